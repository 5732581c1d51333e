package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	r := Request{Command: Add, ContainerID: "c", Netns: "/n", IfName: "eth0", Args: "A=b",
		Config: json.RawMessage(`{"name":"x"}`)}
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	var got Request
	if err := Read(&b, &got); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("read %+v, %v; want %+v", got, err, r)
	}
}

func TestBounds(t *testing.T) {
	big := Response{Result: json.RawMessage(`"` + strings.Repeat("x", MaxSize) + `"`)}
	if err := Write(io.Discard, big); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("writing an oversize message: %v", err)
	}
	head := binary.BigEndian.AppendUint32(nil, MaxSize+1)
	var r Response
	if err := Read(bytes.NewReader(head), &r); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("reading an oversize message: %v", err)
	}
	for _, cut := range []string{"", "\x00\x00", "\x00\x00\x00\x05{}"} {
		if err := Read(strings.NewReader(cut), &r); err == nil {
			t.Errorf("reading the cut message %q succeeded", cut)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\x00\x00\x00\x13{\"command\":\"ADD\",}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r Request
		if Read(bytes.NewReader(in), &r) != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, r); err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		var again Request
		if err := Read(&b, &again); err != nil || again.Command != r.Command || again.Netns != r.Netns {
			t.Errorf("read again %+v, %v; want %+v", again, err, r)
		}
	})
}
