package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/bundle"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// What should be in a bundle and cannot be had is named in it, also where no server runs.
func TestBundleOfBrokenCluster(t *testing.T) {
	aPod := func(app, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: app + "-" + node,
			Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 1}}}}
	}
	s := &remote.Session{Namespace: "ovn-kubernetes", Kube: fake.NewClientset(aPod("ovnkube-node", "n1"),
		aPod("ovnkube-node", "n2"), aPod("ovn-db", "n1"), aPod("somebody-elses", "n1"))}
	parts, err := partsOf(t.Context(), s, []string{"n2"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	for name, want := range map[string]bool{"objects.json": true, "databases/nb.db": true, "databases/n1/northd.txt": true,
		"nodes/n2/doctor.json": true, "nodes/n1/doctor.json": false, "logs/ovnkube-node-n2/c.log": true,
		"logs/ovnkube-node-n2/c.previous.log": true, "logs/ovnkube-node-n1/c.log": false, "logs/ovn-db-n1/c.log": true,
		"logs/somebody-elses-n1/c.log": false,
	} {
		if slices.Contains(names, name) != want {
			t.Errorf("part %s: want it %t, in %q", name, want, names)
		}
	}
	file := filepath.Join(t.TempDir(), "b.tgz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	b := &collector{out: bundle.NewWriter(f, time.Unix(1, 0)), progress: &progress}
	if err := errors.Join(b.collect(t.Context(), parts), f.Close()); err != nil {
		t.Fatal(err)
	}
	var missing bytes.Buffer
	if err := bundle.Copy(file, bundle.Errors, &missing); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"objects.json: no diagnostics server", "databases/nb.db: no diagnostics server",
		"nodes/n2/doctor.json: no diagnostics server"} {
		if !strings.Contains(missing.String(), name) || !strings.Contains(progress.String(), name) {
			t.Errorf("%s\nlacks %s", &missing, name)
		}
	}
	if _, err := partsOf(t.Context(), s, []string{"-o"}); err == nil || !strings.Contains(err.Error(), "flags precede") {
		t.Errorf("a flag behind the nodes: %v", err)
	}
}

// Of one server one part is collected at a time.
func TestOnePartOfAServer(t *testing.T) {
	running := make(chan struct{}, 1)
	one := part{"x", "node/n1", func(context.Context, io.Writer) error {
		select {
		case running <- struct{}{}:
			<-running
			return nil
		default:
			return errors.New("two at the same time")
		}
	}}
	b := &collector{out: bundle.NewWriter(io.Discard, time.Unix(1, 0)), progress: io.Discard}
	if err := b.collect(t.Context(), slices.Repeat([]part{one}, 100)); err != nil || len(b.missing) > 0 || b.files != 100 {
		t.Errorf("%d files, missing %q, %v", b.files, b.missing, err)
	}
}

// An output without content leaves an earlier file alone.
func TestLazyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.pcap")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &lazyFile{path: path}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
		t.Errorf("the file has %q, %v", content, err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "new" || f.Close() != nil {
		t.Errorf("the file has %q, %v", content, err)
	}
}
