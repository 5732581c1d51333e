package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Reader reads one JSON value (RFC 8259) from front to back, without a copy. After the first error its methods read
// nothing and return zero values; Err tells what was wrong. It does not look whether a number has the form of one where
// nobody reads it.
type Reader struct {
	in  []byte
	at  int
	err error
}

// NewReader reads in, which must not change meanwhile.
func NewReader(in []byte) *Reader { return &Reader{in: in} }

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Fail records that something other than what comes next is wanted.
func (r *Reader) Fail(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("reading JSON at byte %d: %.20q, want %s", r.at, r.in[r.at:], want)
	}
}

// next is the first byte of what comes next, 0 at the end and after an error.
func (r *Reader) next() byte {
	for ; r.err == nil && r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take reads c if it comes next.
func (r *Reader) take(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// IsArray tells whether an array comes next.
func (r *Reader) IsArray() bool { return r.next() == '[' }

// Object reads an object. It calls member for each member, which reads the value.
func (r *Reader) Object(member func(key []byte)) {
	r.list('{', '}', func() {
		key := r.Bytes()
		if !r.take(':') {
			r.Fail("a colon")
			return
		}
		member(key)
	})
}

// Array reads an array. It calls element for each element, which reads it.
func (r *Reader) Array(element func()) { r.list('[', ']', element) }

func (r *Reader) list(begin, end byte, item func()) {
	if !r.take(begin) {
		r.Fail(string(begin))
	}
	if r.take(end) {
		return
	}
	for r.err == nil {
		item()
		if r.take(end) {
			return
		}
		if !r.take(',') {
			r.Fail("a comma or " + string(end))
		}
	}
}

// Bytes reads a string. It is part of the input unless it has escapes.
func (r *Reader) Bytes() []byte {
	if !r.take('"') {
		r.Fail("a string")
		return nil
	}
	n := bytes.IndexByte(r.in[r.at:], '"')
	if n < 0 || bytes.IndexByte(r.in[r.at:r.at+n], '\\') >= 0 {
		return r.escaped()
	}
	r.at += n + 1
	return r.in[r.at-n-1 : r.at-1]
}

// escaped reads the rest of a string that has escapes.
func (r *Reader) escaped() []byte {
	for i := r.at; i < len(r.in); i++ {
		switch r.in[i] {
		case '\\':
			i++
		case '"':
			var s string
			if json.Unmarshal(r.in[r.at-1:i+1], &s) != nil {
				r.Fail("a string")
			}
			r.at = i + 1
			return []byte(s)
		}
	}
	r.Fail("the end of the string")
	return nil
}

// Text reads a string.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Int reads an integer.
func (r *Reader) Int() int {
	at := r.at
	n, err := strconv.Atoi(string(r.word()))
	if err != nil {
		r.at = at
		r.Fail("an integer")
	}
	return n
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	at := r.at
	switch string(r.word()) {
	case "true":
		return true
	case "false":
	default:
		r.at = at
		r.Fail("true or false")
	}
	return false
}

// word reads a number, true, false or null.
func (r *Reader) word() []byte {
	r.next()
	start := r.at
	for r.err == nil && r.at < len(r.in) && isWord(r.in[r.at]) {
		r.at++
	}
	if r.at == start {
		r.Fail("a value")
	}
	return r.in[start:r.at]
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// Raw reads any value and returns its bytes, which are part of the input. What is inside an object or array is not
// checked.
func (r *Reader) Raw() []byte {
	c, start := r.next(), r.at
	switch c {
	case '"':
		r.Bytes()
	case '{', '[':
		var n nesting
		end := n.end(r.in[r.at:])
		if end < 0 {
			r.Fail("a whole value")
			return nil
		}
		r.at += end
	default:
		r.word()
	}
	return r.in[start:r.at]
}

// nesting finds the end of an object or array that comes in parts.
type nesting struct {
	depth           int
	quoted, escaped bool
}

// end is the number of bytes of the next part up to the end of the value, -1 when the value is longer.
func (n *nesting) end(part []byte) int {
	for i, c := range part {
		switch {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == '"':
			n.quoted = true
		case c == '{' || c == '[':
			n.depth++
		case c == '}' || c == ']':
			if n.depth--; n.depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}
