package jsonrpc

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// value reads any value as encoding/json does.
func value(r *Reader) any {
	switch r.next() {
	case '{':
		out := map[string]any{}
		r.Object(func(key []byte) {
			k := string(key)
			out[k] = value(r)
		})
		return out
	case '[':
		out := []any{}
		r.Array(func() { out = append(out, value(r)) })
		return out
	case '"':
		return r.Text()
	case 't', 'f':
		return r.Bool()
	case 'n':
		r.Raw()
		return nil
	}
	return json.Number(r.Raw())
}

// FuzzReader compares with encoding/json. What that refuses may pass, but must not panic.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `""`, `0`, ` [ 1 , -2,true,false,null] `, `{"a":{"b":["c",{"d":"é"}]},"":""}`,
		`"\"\\\/\b\f\n\r\té\ud83d\ude00"`, `["uuid","5c4e9a52-7d1b-5f6b-9d0a-2b9f3c1d7a54"]`, `{"a":"}]\\\""}`,
		`["a`, `{"a"`, `{"a":1,}`, `[1 2]`, `}`, `{"a":}`, `"\`, `["\u"]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		NewReader([]byte(s)).Raw()
		r := NewReader([]byte(s))
		got := value(r)
		var want any
		wanted := json.NewDecoder(strings.NewReader(s))
		wanted.UseNumber()
		if !utf8.ValidString(s) || !json.Valid([]byte(s)) || wanted.Decode(&want) != nil {
			return
		}
		if r.Err() != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v (%v), want %v", s, got, r.Err(), want)
		}
		if raw := NewReader([]byte(s)).Raw(); string(raw) != strings.Trim(s, " \t\r\n") {
			t.Errorf("the bytes of %q are %q", s, raw)
		}
	})
}
