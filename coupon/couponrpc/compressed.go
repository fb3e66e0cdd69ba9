package couponrpc

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/tallystick/tallystick/coupon"
)

// decompressed has the body of a REST call arrive as it was before it was compressed, of
// maxBody bytes at most: the transcoder decompresses without a bound. It reports
// whether the encoding is one that there is.
func decompressed(w http.ResponseWriter, r *http.Request) bool {
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return true
	case "gzip":
		r.Body = http.MaxBytesReader(w, &unzipped{ReadCloser: r.Body}, maxBody)
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		return true
	}
	return false
}

// unzipped decompresses a body while it is read.
type unzipped struct {
	io.ReadCloser
	zip *gzip.Reader // nil: nothing was read
}

// Read reads some of what was compressed. What is not gzip is the caller's
// mistake; a connection that fails has its own error.
func (u *unzipped) Read(to []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.ReadCloser); err != nil {
			u.zip = nil
			return 0, noGzip(err)
		}
	}
	n, err = u.zip.Read(to)
	return n, noGzip(err)
}

func noGzip(err error) error {
	switch err {
	case nil, io.EOF:
		return err
	case gzip.ErrHeader, gzip.ErrChecksum, io.ErrUnexpectedEOF:
		return Encode(coupon.ErrInvalid.With("the body is not gzip, as Content-Encoding says: %v", err))
	}
	if strings.HasPrefix(err.Error(), "flate: corrupt") {
		return Encode(coupon.ErrInvalid.With("the body is not gzip, as Content-Encoding says: %v", err))
	}
	return err
}
