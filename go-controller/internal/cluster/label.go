package cluster

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
	"unique"
)

// Labels are the labels of an object. Equal sets compare equal with == and share one copy in memory, which is freed
// with the last object that carries them. So a Labels is also a good key for a map: what a selector makes of it holds
// for all objects that carry it. The zero value is the empty set.
type Labels struct {
	// Keys and values, sorted by key, each behind its length as a varint. The zero handle is the empty set.
	set unique.Handle[string]
}

// NewLabels is the set of these labels.
func NewLabels(labels map[string]string) Labels {
	if len(labels) == 0 {
		return Labels{}
	}
	size := 0
	for k, v := range labels {
		size += len(k) + len(v) + 2*binary.MaxVarintLen32
	}
	encoded := make([]byte, 0, size)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		for _, text := range []string{k, labels[k]} {
			encoded = binary.AppendUvarint(encoded, uint64(len(text)))
			encoded = append(encoded, text...)
		}
	}
	return Labels{unique.Make(string(encoded))}
}

// All are the labels, sorted by key.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if l == (Labels{}) {
			return
		}
		for rest := l.set.Value(); rest != ""; {
			var key, value string
			key, rest = cutText(rest)
			value, rest = cutText(rest)
			if !yield(key, value) {
				return
			}
		}
	}
}

// cutText takes the first text off an encoded set.
func cutText(encoded string) (text, rest string) {
	length, shift := 0, 0
	for i := range len(encoded) {
		length |= int(encoded[i]&0x7f) << shift
		if encoded[i] < 0x80 {
			encoded = encoded[i+1:]
			break
		}
		shift += 7
	}
	return encoded[:length], encoded[length:]
}

// Get is the value of a label; ok is false when there is no such label.
func (l Labels) Get(key string) (value string, ok bool) {
	for k, v := range l.All() {
		if k == key {
			return v, true
		}
	}
	return "", false
}

// String is "app=web,tier=front".
func (l Labels) String() string {
	var pairs []string
	for k, v := range l.All() {
		pairs = append(pairs, k+"="+v)
	}
	return strings.Join(pairs, ",")
}
