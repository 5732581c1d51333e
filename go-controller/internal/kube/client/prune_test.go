package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// frame is an event of a watch as an API server sends it.
func frame(t testing.TB, kind string, o runtime.Object) []byte {
	t.Helper()
	var object, event bytes.Buffer
	if err := serializer.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &object); err != nil {
		t.Fatal(err)
	}
	e := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object.Bytes()}}
	if err := serializer.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(e, &event); err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(event.Len())), event.Bytes()...)
}

func object() *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u", ResourceVersion: "7",
			Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"k8s.io/initial-events-end": "true"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1("{}")}, {}}},
		Spec: corev1.PodSpec{NodeName: "x"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// All of an object stays but its managedFields. Other messages stay as they are, and so does the end.
func TestPruned(t *testing.T) {
	without := object()
	without.ManagedFields = nil
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "gone", Code: 410}
	given := slices.Concat(frame(t, "ADDED", object()), frame(t, "ERROR", status), frame(t, "BOOKMARK", without),
		[]byte{0, 0, 0, 0}, []byte{0, 0, 0, 3, 'b', 'a', 'd'})
	want := slices.Concat(frame(t, "ADDED", without), frame(t, "ERROR", status), frame(t, "BOOKMARK", without),
		[]byte{0, 0, 0, 0}, []byte{0, 0, 0, 3, 'b', 'a', 'd'})
	for _, reader := range []io.Reader{bytes.NewReader(given), iotest.OneByteReader(bytes.NewReader(given))} {
		got, err := io.ReadAll(iotest.OneByteReader(newPruned(io.NopCloser(reader))))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v, %q\nwant %q", err, got, want)
		}
	}
	for cut := 1; cut < len(frame(t, "ADDED", object())); cut += 7 {
		body := newPruned(io.NopCloser(bytes.NewReader(given[:cut])))
		if _, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a watch that is cut after %d bytes: %v", cut, err)
		}
	}
	long := newPruned(io.NopCloser(strings.NewReader("\xff\xff\xff\xff")))
	if _, err := io.ReadAll(long); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a message of 4 GB: %v", err)
	}
}

// counted counts how often it is read.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(b []byte) (int, error) {
	c.reads++
	return c.Reader.Read(b)
}

// Many messages are read at once.
func TestPrunedReadsBlocks(t *testing.T) {
	one := frame(t, "ADDED", object())
	body := &counted{Reader: bytes.NewReader(bytes.Repeat(one, 1000))}
	if _, err := io.Copy(io.Discard, newPruned(io.NopCloser(body))); err != nil {
		t.Fatal(err)
	}
	if most := 1000*len(one)/buffered + 2; body.reads > most { // the last finds the end
		t.Errorf("1000 messages of %d bytes took %d reads, want at most %d", len(one), body.reads, most)
	}
}

type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// Only watches in protobuf are pruned.
func TestPruningTransport(t *testing.T) {
	for kind, want := range map[string]bool{
		"application/vnd.kubernetes.protobuf;stream=watch": true, "application/vnd.kubernetes.protobuf": false,
		"application/json;stream=watch": false, "": false,
	} {
		response, err := pruning{answering(func() *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: http.NoBody}
		})}.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := response.Body.(*pruned); got != want {
			t.Errorf("%s: pruned %v, want %v", kind, got, want)
		}
		response.Body.Close()
	}
}

// FuzzPrune holds that a message which can be decoded means the same, and that none crashes the program.
func FuzzPrune(f *testing.F) {
	f.Add(frame(f, "ADDED", object())[4:])
	f.Fuzz(func(t *testing.T, message []byte) {
		p := pruned{}
		out := p.prune(message, 0)
		var before, after metav1.WatchEvent
		if before.Unmarshal(message) != nil {
			return
		}
		if err := after.Unmarshal(out); err != nil || before.Type != after.Type {
			t.Fatalf("%v, %v became %v", err, before, after)
		}
		s := serializer.NewSerializer(scheme.Scheme, scheme.Scheme)
		b, _, err := s.Decode(before.Object.Raw, nil, nil)
		if err != nil {
			return
		}
		a, _, err := s.Decode(after.Object.Raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []runtime.Object{a, b} {
			if m, ok := o.(metav1.Object); ok {
				m.SetManagedFields(nil)
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%v became %v", b, a)
		}
	})
}
