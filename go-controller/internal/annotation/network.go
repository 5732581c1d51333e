package annotation

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Several annotations are a JSON object with an entry for each network, such as {"default":["10.244.1.0/24"]}. They
// stay text until an entry is needed. Whoever writes a Node's entry keeps all others, also those that can't be read.

// Kept is what is kept of an annotation that users can write. One that is too long is cut, and still too long.
func Kept(value string) string {
	if len(value) <= maxSize {
		return value
	}
	return strings.Clone(value[:maxSize+1])
}

// entries is all entries by key, of a value of at most so many bytes. example is an annotation for errors.
func entries(value, example string, limit int) (all map[string]json.RawMessage, err error) {
	if value == "" {
		return nil, nil
	}
	if err := checkSize(value, limit); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return nil, malformed(err, example)
	}
	return all, nil
}

// entryOf reads one of several entries; ok is false when there is none.
func entryOf(all map[string]json.RawMessage, key, example string, into any) (ok bool, err error) {
	raw, ok := all[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, malformed(err, example)
	}
	return true, nil
}

// nodeEntries is the entries of an annotation of a Node. There may be one for each network.
type nodeEntries struct {
	value, example string
	all            map[string]json.RawMessage
	err            error // why it can't be read
}

func readEntries(value, example string) nodeEntries {
	all, err := entries(value, example, maxNodeSize)
	return nodeEntries{value, example, all, err}
}

// keys lists the keys of all entries, in no order.
func (e nodeEntries) keys() iter.Seq[names.Network] {
	return func(yield func(names.Network) bool) {
		for key := range e.all {
			if !yield(names.Network(key)) {
				return
			}
		}
	}
}

// entry reads the entry of a network; ok is false when there is none.
func (e nodeEntries) entry(network names.Network, into any) (ok bool, err error) {
	if e.err != nil {
		return false, e.err
	}
	return entryOf(e.all, string(network), e.example, into)
}

// ownEntry is the entry of the cluster's own network, which must be there.
func ownEntry(annotation, value, example string, ok bool, err error) error {
	switch {
	case err != nil || ok:
		return err
	case value == "":
		return refused(annotation, value, fmt.Errorf("not JSON, want such as %s", example))
	}
	return refused(annotation, value, noNetwork(example))
}

// set is the value with the entries of networks: wire is the form of an entry, and a network without prefixes has none.
// Of a malformed value, and of one that is too long, nothing is kept. The value is "" when no entry is left.
func set(value string, of map[names.Network][]netip.Prefix, wire func([]netip.Prefix) any) string {
	all, err := entries(value, "", maxNodeSize)
	if err != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	for network, ps := range of {
		delete(all, string(network))
		if len(ps) > 0 {
			all[string(network)] = json.RawMessage(marshal(wire(ps)))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return marshal(all)
}
