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

	"google.golang.org/protobuf/encoding/protowire"
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

// object is a pod as an API server has it.
func object() *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", UID: "u", ResourceVersion: "7",
			Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"k8s.io/initial-events-end": "true"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1("{}")}, {}}},
		Spec: corev1.PodSpec{NodeName: "x", ServiceAccountName: "default", Containers: []corev1.Container{container("c")},
			InitContainers: []corev1.Container{container("i")}, EphemeralContainers: []corev1.EphemeralContainer{{}},
			Volumes: []corev1.Volume{{Name: "v"}}, Tolerations: []corev1.Toleration{{Key: "k"}, {Key: "l"}},
			Affinity: &corev1.Affinity{}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "k"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1",
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "image"}}}}
}

func container(name string) corev1.Container {
	probe := &corev1.Probe{PeriodSeconds: 10}
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{Name: name, Image: "image", Command: []string{"a"}, Args: []string{"b"}, WorkingDir: "/",
		Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Env:   []corev1.EnvVar{{Name: "E"}}, EnvFrom: []corev1.EnvFromSource{{Prefix: "p"}}, RestartPolicy: &always,
		Resources:    corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c"}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v"}}, LivenessProbe: probe, ReadinessProbe: probe, StartupProbe: probe,
		Lifecycle: &corev1.Lifecycle{}, TerminationMessagePath: "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullAlways,
		SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}
}

// machine is a node as an API server has it.
func machine() *corev1.Node {
	return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: object().ObjectMeta,
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"image"}}, {}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
}

// strip removes from an object what is left out of it.
func strip(o runtime.Object) runtime.Object {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Images = nil
	case *corev1.Pod:
		o.Spec.Volumes, o.Spec.Affinity, o.Spec.Tolerations, o.Spec.TopologySpreadConstraints = nil, nil, nil, nil
		o.Spec.EphemeralContainers, o.Status.EphemeralContainerStatuses = nil, nil
		o.Status.Conditions, o.Status.ContainerStatuses, o.Status.InitContainerStatuses = nil, nil, nil
		for _, list := range [][]corev1.Container{o.Spec.Containers, o.Spec.InitContainers} {
			for i, c := range list {
				list[i] = corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
					SecurityContext: c.SecurityContext, VolumeDevices: c.VolumeDevices, ResizePolicy: c.ResizePolicy,
					RestartPolicyRules: c.RestartPolicyRules, Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY}
			}
		}
	}
	return o
}

// All of an object stays but what nobody here reads. Other messages stay as they are, and so does the end.
func TestPruned(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: object().ObjectMeta, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	for _, o := range []runtime.Object{object(), machine(), claim} {
		checkPruned(t, o)
	}
}

func checkPruned(t *testing.T, object runtime.Object) {
	t.Helper()
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "gone", Code: 410}
	first := frame(t, "ADDED", object)
	others := slices.Concat(frame(t, "ERROR", status), []byte{0, 0, 0, 0}, []byte{0, 0, 0, 3, 'b', 'a', 'd'})
	given := slices.Concat(first, others)
	for _, reader := range []io.Reader{bytes.NewReader(given), iotest.OneByteReader(bytes.NewReader(given))} {
		got, err := io.ReadAll(iotest.OneByteReader(newPruned(io.NopCloser(reader))))
		if err != nil || !bytes.HasSuffix(got, others) || len(got) >= len(given) {
			t.Fatalf("%v, %q\nwant shorter, and at the end %q", err, got, others)
		}
		if o, want := unframe(t, got), strip(unframe(t, first)); !reflect.DeepEqual(o, want) {
			t.Errorf("%+v\nwant %+v", o, want)
		}
	}
	for cut := 1; cut < len(first); cut += 7 {
		body := newPruned(io.NopCloser(bytes.NewReader(given[:cut])))
		if _, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a watch that is cut after %d bytes: %v", cut, err)
		}
	}
}

// unframe is the object in the first event.
func unframe(t *testing.T, stream []byte) runtime.Object {
	t.Helper()
	var e metav1.WatchEvent
	if err := e.Unmarshal(stream[4 : 4+binary.BigEndian.Uint32(stream)]); err != nil {
		t.Fatal(err)
	}
	o, _, err := serializer.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(e.Object.Raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A message that says it is longer than any is refused.
func TestLongMessage(t *testing.T) {
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

// typed is an event of a Service with two TypeMetas, of which the decoder takes the last.
func typed(t testing.TB, metas ...metav1.TypeMeta) []byte {
	t.Helper()
	raw, err := (&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := []byte(magic)
	for _, m := range metas {
		meta, err := (&runtime.TypeMeta{APIVersion: m.APIVersion, Kind: m.Kind}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		unknown = protowire.AppendBytes(protowire.AppendTag(unknown, 1, protowire.BytesType), meta)
	}
	unknown = protowire.AppendBytes(protowire.AppendTag(unknown, 2, protowire.BytesType), raw)
	event, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: unknown}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// FuzzPrune holds that a message which can be decoded means the same, and that none crashes the program.
func FuzzPrune(f *testing.F) {
	f.Add(frame(f, "ADDED", object())[4:])
	f.Add(frame(f, "MODIFIED", machine())[4:])
	pod, service := object().TypeMeta, metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	f.Add(typed(f, pod, service))
	f.Add(typed(f, service, pod))
	f.Fuzz(func(t *testing.T, message []byte) {
		p := pruned{cuts: cuts()}
		out := p.prune(message, 0, event())
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
		if strip(a); !reflect.DeepEqual(a, strip(b)) {
			t.Errorf("%v became %v", b, a)
		}
	})
}

// BenchmarkPrune is the time that an event of a pod takes, from its bytes to the object.
func BenchmarkPrune(b *testing.B) {
	event := frame(b, "ADDED", object())
	for what, cuts := range map[string]map[string]cut{"whole": {"": {2: {}}}, "without managedFields": {"": cuts()[""]},
		"without all that nobody reads": cuts()} {
		b.Run(what, func(b *testing.B) {
			s := serializer.NewSerializer(scheme.Scheme, scheme.Scheme)
			body := newPruned(io.NopCloser(bytes.NewReader(bytes.Repeat(event, b.N))))
			body.cuts = cuts
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := body.next(); err != nil {
					b.Fatal(err)
				}
				var e metav1.WatchEvent
				if err := e.Unmarshal(body.out[4:]); err != nil {
					b.Fatal(err)
				}
				if _, _, err := s.Decode(e.Object.Raw, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
