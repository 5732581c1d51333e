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

// Watches begin with all objects. Nobody here reads most of what pods and nodes are described by, and the API server
// can't be asked to leave that out: managedFields, which are half of many an object, containers' commands and probes,
// the images of a node. So it is cut out before client-go copies and decodes an object.

// withCuts is rc for watches without what nobody here reads.
func withCuts(rc *rest.Config) *rest.Config {
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
	event   cut            // what is cut out of a WatchEvent
	cuts    map[string]cut // by the kind of object
}

// buffered is how many bytes of a watch are read at once. In HTTP/2 the receiver acknowledges what was read: with one
// message at a time, both sides would have much to do for that alone.
const buffered = 32 << 10

func newPruned(body io.ReadCloser) *pruned {
	return &pruned{Closer: body, from: bufio.NewReaderSize(body, buffered), event: event(), cuts: cuts()}
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
	out := p.prune(p.message, 0, p.event)
	p.whole = append(binary.BigEndian.AppendUint32(p.whole[:0], uint32(len(out))), out...)
	p.out = p.whole
	return nil
}

// cut is what is left out of a message, by numbers of fields: nil for the whole field, else what is left out of the
// message in it.
type cut map[protowire.Number]cut

// cuts is what is left out of an Unknown, by the kind of the object in its field 2. "" is for all other kinds
// (Kubernetes API, generated.proto).
func cuts() map[string]cut {
	metadata := cut{17: nil} // managedFields
	// image, command, args, workingDir, env, resources, volumeMounts, livenessProbe, readinessProbe, lifecycle,
	// terminationMessagePath, imagePullPolicy, envFrom, terminationMessagePolicy, startupProbe
	container := all(2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 19, 20, 22)
	// volumes, affinity, tolerations, topologySpreadConstraints, ephemeralContainers; and of containers, initContainers
	spec := all(1, 18, 22, 33, 34)
	spec[2], spec[20] = container, container
	status := all(2, 8, 10, 13) // conditions, and the statuses of the three lists of containers
	images := all(8)
	return map[string]cut{
		"":     {2: {1: metadata}},
		"Pod":  {2: {1: metadata, 2: spec, 3: status}},
		"Node": {2: {1: metadata, 3: images}},
	}
}

// all leaves out whole fields.
func all(numbers ...protowire.Number) cut {
	c := cut{}
	for _, n := range numbers {
		c[n] = nil
	}
	return c
}

// event is the way from a WatchEvent to the object in it: its field 2 is a RawExtension, and that one's field 1 the
// object. prune decides itself what is left out of that.
func event() cut { return cut{2: {1: {}}} }

// depth is how many messages are in each other: WatchEvent, RawExtension, Unknown, the object, a part of it, and a
// container.
const depth = 6

// unknown is the level of the Unknown, whose field 1 is the object's TypeMeta and whose field 2 is the object.
const unknown = 2

// magic precedes an Unknown.
const magic = "k8s\x00"

// prune is a message without what is to be left out. A message that can't be read is as it was: client-go says what is
// wrong with it. The result is valid until the next call of the level.
func (p *pruned) prune(message []byte, level int, c cut) []byte {
	out := p.levels[level][:0]
	rest, typed, pruned := message, false, false
	if level == unknown {
		if len(rest) < len(magic) || string(rest[:len(magic)]) != magic {
			return message
		}
		out, rest = append(out, magic...), rest[len(magic):]
		c = p.cuts[""]
	}
	for len(rest) > 0 {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return message
		}
		field := rest[:n]
		rest = rest[n:]
		if level == unknown && number == 1 {
			if typed || pruned {
				return message // no API server writes that
			}
			typed = true
			if named, ok := p.cuts[string(kindOf(field, kind))]; ok {
				c = named
			}
		}
		inner, is := c[number]
		pruned = pruned || is
		switch {
		case !is || kind != protowire.BytesType:
			out = append(out, field...)
		case inner != nil:
			_, _, tag := protowire.ConsumeTag(field)
			value, _ := protowire.ConsumeBytes(field[tag:])
			out = append(out, field[:tag]...)
			out = protowire.AppendBytes(out, p.prune(value, level+1, inner))
		}
	}
	p.levels[level] = out
	return out
}

// kindOf is the kind of object that a TypeMeta has in its field 2. The last one counts. field is the one with the
// TypeMeta in it.
func kindOf(field []byte, wire protowire.Type) (name []byte) {
	if wire != protowire.BytesType {
		return nil
	}
	_, _, tag := protowire.ConsumeTag(field)
	rest, _ := protowire.ConsumeBytes(field[tag:])
	for len(rest) > 0 {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return nil
		}
		if number == 2 && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(rest)
			name, _ = protowire.ConsumeBytes(rest[tag:n])
		}
		rest = rest[n:]
	}
	return name
}
