package server

import (
	"bytes"
	"io"
	"regexp"
)

// redactor replaces the keys of IPsec tunnels in lines of output. Source: ovs-vswitchd.conf.db(5), Interface, "psk".
type redactor struct {
	to   io.Writer
	rest []byte // a line that has not ended
}

// key is psk=SECRET, as ovs-vsctl prints maps, or in JSON ["psk","SECRET"].
func key() *regexp.Regexp { return regexp.MustCompile(`(\bpsk\\?"?[=,] ?\\?"?)[^",}\]\\]+`) }

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
	lines = key().ReplaceAll(lines, []byte("${1}removed"))
	for len(lines) > 0 {
		piece := lines[:min(len(lines), maxPiece)]
		if _, err := r.to.Write(piece); err != nil {
			return err
		}
		lines = lines[len(piece):]
	}
	return nil
}
