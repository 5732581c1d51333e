package client

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/client-go/rest"
)

// Nobody here reads managedFields, which are half of many an object. The API server can't be asked to leave them out.
// So they are cut out of watches before client-go copies and decodes them: a watch begins with all objects.

// withoutManagedFields is rc for objects without managedFields.
func withoutManagedFields(rc *rest.Config) *rest.Config {
	c := rest.CopyConfig(rc)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return pruning{next} })
	return c
}

// pruning prunes watches that are encoded as protobuf. It passes on everything else.
type pruning struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p pruning) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	kind, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && kind == protobufType && params["stream"] == "watch" {
		response.Body = newPruned(response.Body)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go look for the transport behind.
func (p pruning) WrappedRoundTripper() http.RoundTripper { return p.next }

// pruned is the body of a watch: messages, each behind its length in 4 bytes.
type pruned struct {
	io.Closer
	from    *bufio.Reader
	message []byte // as the API server sent it
	whole   []byte // as it is handed out
	out     []byte // the part of it that was not read yet
	levels  [depth][]byte
}

// buffered is how many bytes of a watch are read at once. In HTTP/2 the receiver acknowledges what was read: with one
// message at a time, both sides would have much to do for that alone.
const buffered = 32 << 10

func newPruned(body io.ReadCloser) *pruned {
	return &pruned{Closer: body, from: bufio.NewReaderSize(body, buffered)}
}

// largest is the longest message that is taken. client-go takes no longer ones either.
const largest = 16 << 20

// Read implements io.Reader.
func (p *pruned) Read(b []byte) (int, error) {
	if len(p.out) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.out)
	p.out = p.out[n:]
	return n, nil
}

// next reads the next message.
func (p *pruned) next() error {
	var head [4]byte
	if _, err := io.ReadFull(p.from, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > largest {
		return fmt.Errorf("a message of %d bytes in a watch: want at most %d", size, largest)
	}
	length := int(size)
	if cap(p.message) < length {
		p.message = make([]byte, length)
	}
	p.message = p.message[:length]
	if _, err := io.ReadFull(p.from, p.message); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	out := p.prune(p.message, 0)
	p.whole = append(binary.BigEndian.AppendUint32(p.whole[:0], uint32(len(out))), out...)
	p.out = p.whole
	return nil
}

// The managedFields of an object in an event: the number of the field that leads there, from level to level. They are
// the fields object of WatchEvent, raw of RawExtension, raw of Unknown, metadata of any object, and managedFields.
const depth = 5

func path(level int) protowire.Number { return [depth]protowire.Number{2, 1, 2, 1, 17}[level] }

// magic precedes an Unknown.
const magic = "k8s\x00"

// prune is a message without the managedFields in it. A message that can't be read is as it was: client-go says what is
// wrong with it. The result is valid until the next call of the level.
func (p *pruned) prune(message []byte, level int) []byte {
	out := p.levels[level][:0]
	rest := message
	if level == 2 {
		if len(rest) < len(magic) || string(rest[:len(magic)]) != magic {
			return message
		}
		out, rest = append(out, magic...), rest[len(magic):]
	}
	for len(rest) > 0 {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return message
		}
		field := rest[:n]
		rest = rest[n:]
		switch {
		case number != path(level) || kind != protowire.BytesType:
			out = append(out, field...)
		case level < depth-1:
			_, _, tag := protowire.ConsumeTag(field)
			value, _ := protowire.ConsumeBytes(field[tag:])
			out = append(out, field[:tag]...)
			out = protowire.AppendBytes(out, p.prune(value, level+1))
		}
	}
	p.levels[level] = out
	return out
}
