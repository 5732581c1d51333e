package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder reads JSON. Names are not compared with each other: that takes memory, and the copy notices a row that comes
// twice.
func decoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// receive reads messages until the connection ends.
func (c *Conn) receive() {
	defer close(c.closed)
	d := decoder(c.net)
	for {
		if err := c.message(d); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			c.fail(err)
			return
		}
	}
}

// message is one message from the server: an answer or a request.
type message struct {
	id, params, result, failure jsontext.Value
	method                      string
	read                        bool // params or result were read where they stood
}

// message reads and handles one message. The result of a monitor and the params of an update may be large. They are
// read where they stand if what they belong to stands before them, as ovsdb-server has it.
func (c *Conn) message(d *jsontext.Decoder) error {
	var m message
	err := object(d, func(name []byte) (err error) {
		switch string(name) {
		case "id":
			return keep(d, &m.id)
		case "method":
			m.method, err = readText(d)
			return err
		case "params":
			if isUpdate(m.method) {
				m.read = true
				return c.update(d)
			}
			return keep(d, &m.params)
		case "result":
			if w := c.waiting(m.id); w != nil && w.stream != nil && d.PeekKind() != 'n' {
				m.read = true
				return w.stream(d)
			}
			return keep(d, &m.result)
		case "error":
			return keep(d, &m.failure)
		}
		return d.SkipValue()
	})
	switch {
	case err != nil:
		return err
	case m.method == "":
		return c.answer(m)
	case isUpdate(m.method) && !m.read:
		return c.update(decoder(bytes.NewReader(m.params)))
	case m.method == "monitor_canceled":
		return errors.New("the server has cancelled a monitor")
	case m.method == "echo":
		go c.reply(response{ID: m.id, Result: m.params}) // the server may not read before this goroutine does
	}
	return nil
}

func isUpdate(method string) bool { return method == "update2" || method == "update3" }

// replyTimeout is how long a server may take to read an answer. Then the connection ends.
const replyTimeout = 10 * time.Second

// reply answers a request. There is nobody to tell that it fails: the connection has ended then.
func (c *Conn) reply(r response) {
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	_ = c.send(ctx, r)
}

// waiting is the call that an answer is for, nil when nobody waits for it any more.
func (c *Conn) waiting(id jsontext.Value) *call {
	n, err := strconv.ParseUint(string(id), 10, 64)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[n]
}

// answer hands an answer to whoever waits for it.
func (c *Conn) answer(m message) error {
	w := c.waiting(m.id)
	if w == nil {
		return nil
	}
	var refused error
	switch {
	case m.failure != nil && string(m.failure) != "null":
		refused = failure(m.failure)
	case w.stream != nil && !m.read:
		if err := w.stream(decoder(bytes.NewReader(m.result))); err != nil {
			return err
		}
	}
	id, _ := strconv.ParseUint(string(m.id), 10, 64) // waiting has read it
	if c.forget(id) {
		w.result = m.result
		w.end(refused)
	}
	return nil
}

// failure is the error of an answer: a text, or an object with a text and details (RFC 7047 section 4).
func failure(raw jsontext.Value) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return errors.New(text)
	}
	var e struct{ Error, Details string }
	if json.Unmarshal(raw, &e) == nil && e.Error != "" {
		return fmt.Errorf("%s: %s", e.Error, e.Details)
	}
	return errors.New(string(raw))
}

// object reads an object. member reads the value of one name, which is valid until then.
func object(d *jsontext.Decoder, member func(name []byte) error) error {
	if err := token(d, '{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := member(text(name)); err != nil {
			return err
		}
	}
	return token(d, '}')
}

// elements reads an array. element reads the i-th element.
func elements(d *jsontext.Decoder, element func(i int) error) error {
	if err := token(d, '['); err != nil {
		return err
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	return token(d, ']')
}

// token reads a token of a kind.
func token(d *jsontext.Decoder, kind jsontext.Kind) error {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != kind {
		err = fmt.Errorf("JSON has %s at byte %d, want %s", t.Kind(), d.InputOffset(), kind)
	}
	return err
}

// keep copies the next value.
func keep(d *jsontext.Decoder, to *jsontext.Value) error {
	v, err := d.ReadValue()
	*to = v.Clone()
	return err
}

func readText(d *jsontext.Decoder) (string, error) {
	v, err := d.ReadValue()
	return string(text(v)), err
}

// text is the text of a string, and any other value as it stands. It is valid as long as the value.
func text(v jsontext.Value) []byte {
	if len(v) < 2 || v[0] != '"' {
		return v
	}
	if inner := v[1 : len(v)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	out, _ := jsontext.AppendUnquote(nil, v) // the decoder has found it valid
	return out
}
