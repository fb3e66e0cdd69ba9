package migredis

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var files embed.FS

// A library is the scripts by name, each behind what they share.
type library map[string]*redis.Script

var scripts = newLibrary(func(text string) string { return text })

// newLibrary returns the scripts after edit.
func newLibrary(edit func(string) string) library {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	all := library{}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".lua")
		if name != "lib" && name != "slots" {
			all[name] = redis.NewScript(edit(source("lib") + source("slots") + source(name)))
		}
	}
	return all
}

func source(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // embedded
	}
	return string(text)
}
