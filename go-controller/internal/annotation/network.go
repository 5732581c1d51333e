package annotation

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Several annotations are a JSON object with an entry for each network, such as {"default":["10.244.1.0/24"]}. They
// stay text until an entry is needed. Whoever writes an entry keeps all others, also those that it can't read.

// Kept is what is kept of an annotation that users can write. One that is too long is cut, and still too long.
func Kept(value string) string {
	if len(value) <= maxSize {
		return value
	}
	return strings.Clone(value[:maxSize+1])
}

// entry reads the entry of one key; ok is false when there is none. example is an annotation for errors.
func entry(value, key, example string, into any) (ok bool, err error) {
	if value == "" {
		return false, nil
	}
	if err := checkSize(value); err != nil {
		return false, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return false, malformed(err, example)
	}
	raw, ok := all[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, malformed(err, example)
	}
	return true, nil
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

// set is the value with the entries of keys. wire is the wire form of an entry; ok is false for one to be removed. Of a
// malformed value, and of one that is too long, nothing is kept. The value is "" when no entry is left.
func set[K ~string, V any](value string, entries map[K]V, wire func(V) (v any, ok bool)) string {
	all := map[string]json.RawMessage{}
	if value != "" && (checkSize(value) != nil || json.Unmarshal([]byte(value), &all) != nil) || all == nil {
		all = map[string]json.RawMessage{}
	}
	for k, e := range entries {
		if v, ok := wire(e); ok {
			all[string(k)] = json.RawMessage(marshal(v))
		} else {
			delete(all, string(k))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return marshal(all)
}
