package main

import (
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// secrets are the words that must not be printed: passwords in the values that
// a plan takes from the environment or has itself.
type secrets struct{ words []string }

// lookup returns a variable of the environment and notes its secrets.
func (s *secrets) lookup(name string) (string, bool) {
	v, ok := os.LookupEnv(name)
	s.note(v)
	if secretName.MatchString(name) {
		s.add(v)
	}
	return v, ok
}

var (
	secretName = regexp.MustCompile(`(?i)(pass|secret|token|key|credential)`)
	dsnSecret  = regexp.MustCompile(`(?i)pass\w*\s*=\s*(?:'([^']*)'|([^\s&]+))`)
	urlSecret  = regexp.MustCompile(`://[^:/@\s]*:([^@\s]*)@`)
)

// note notes the secrets in connection strings.
func (s *secrets) note(values ...string) {
	for _, v := range values {
		for _, re := range []*regexp.Regexp{dsnSecret, urlSecret} {
			for _, m := range re.FindAllStringSubmatch(v, -1) {
				for _, word := range m[1:] {
					s.add(word)
				}
			}
		}
	}
}

func (s *secrets) add(word string) {
	plain, err := url.QueryUnescape(word)
	if err != nil {
		plain = word
	}
	for _, w := range []string{word, plain} {
		if len(w) > 2 {
			s.words = append(s.words, w)
		}
	}
}

// mask returns text without secrets.
func (s *secrets) mask(text string) string {
	for _, w := range s.words {
		text = strings.ReplaceAll(text, w, "***")
	}
	return text
}

// A maskingWriter prints to w without secrets.
type maskingWriter struct {
	w io.Writer
	s *secrets
}

func (m maskingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.s.mask(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
