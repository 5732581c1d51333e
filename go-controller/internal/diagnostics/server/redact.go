package server

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// redactor replaces the values of diagnostics.SecretKeys in lines of output.
type redactor struct {
	to   io.Writer
	rest []byte // a line that has not ended
}

// secrets are a key and its value, as ovs-vsctl prints maps, psk=SECRET, or in JSON, ["psk","SECRET"], perhaps with a
// backslash before the quotes. The first is about values in quotes, which may have any character.
func secrets() []*regexp.Regexp {
	key := `(\b(?:` + strings.Join(diagnostics.SecretKeys(), "|") + `)`
	return []*regexp.Regexp{
		regexp.MustCompile(key + `"?[=,] ?")(?:[^"\\]|\\.)*`),
		regexp.MustCompile(key + `\\?"?[=,] ?\\?"?)[^",}\]\\\n]+`),
	}
}

// Write passes whole lines on.
func (r *redactor) Write(b []byte) (int, error) {
	r.rest = append(r.rest, b...)
	end := bytes.LastIndexByte(r.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	if err := r.send(r.rest[:end]); err != nil {
		return 0, err
	}
	r.rest = bytes.Clone(r.rest[end:])
	return len(b), nil
}

// flush passes the last line on, which may have no end.
func (r *redactor) flush() error {
	if len(r.rest) == 0 {
		return nil
	}
	defer func() { r.rest = nil }()
	return r.send(r.rest)
}

// maxPiece keeps frames shorter than readers take.
const maxPiece = 32 << 10

func (r *redactor) send(lines []byte) error {
	for _, secret := range secrets() {
		lines = secret.ReplaceAll(lines, []byte("${1}removed"))
	}
	for len(lines) > 0 {
		piece := lines[:min(len(lines), maxPiece)]
		if _, err := r.to.Write(piece); err != nil {
			return err
		}
		lines = lines[len(piece):]
	}
	return nil
}
