package local

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func peerNode(name string, addrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// awaitPeers waits until all these Nodes were read, and their addresses are so.
func awaitPeers(t *testing.T, l *Watcher, want string, names ...string) (version uint64) {
	t.Helper()
	for {
		p := l.Peers(names)
		if p.Read && fmt.Sprint(p.Addrs) == want {
			return p.Version
		}
		select {
		case <-l.Changed():
		case <-time.After(time.Minute):
			t.Fatalf("addresses %v, all of them read: %v; want %s", p.Addrs, p.Read, want)
		}
	}
}

// Nodes are read when their addresses are asked for, once; what is not an
// address, or leads to no other host, is left out, and of two addresses of a family
// the second.
func TestPeers(t *testing.T) {
	l, client := startLocal(t)
	for _, n := range []*corev1.Node{peerNode("n2", "172.18.0.3", "172.18.0.33", "fd18::3"),
		peerNode("n3", "", "127.0.0.1", "::ffff:172.18.0.4"), peerNode("n4", "::1", "fe80::1", "0.0.0.0")} {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before := awaitPeers(t, l, "map[n2:[172.18.0.3 fd18::3] n3:[172.18.0.4]]", "n2", "n3", "n4", "gone")
	if again := awaitPeers(t, l, "map[n2:[172.18.0.3 fd18::3]]", "n2", "n4", "gone"); again != before {
		t.Errorf("version %d, then %d though nothing was read", before, again)
	}
	if after := awaitPeers(t, l, "map[n3:[172.18.0.4]]", "n3"); after == before {
		t.Errorf("version %d as before, though a Node was forgotten and read again", after)
	}
	if n := gets(client, "n2"); n != 1 {
		t.Errorf("n2 was read %d times, want once", n)
	}
}

func gets(client *fake.Clientset, name string) (n int) {
	for _, a := range client.Actions() {
		if g, ok := a.(k8stesting.GetAction); ok && a.Matches("get", "nodes") && g.GetName() == name {
			n++
		}
	}
	return n
}

// A Node that is read again may have another address; one that can't be read
// keeps what was known, and one that is gone has none.
func TestPeersChange(t *testing.T) {
	var refused atomic.Bool
	l, client := startLocalWith(t, func(l *Watcher) {
		l.peers.refresh = 1
		forbidNodes(l, func(name string) bool { return name == "n2" && refused.Load() })
	}, peerNode("n2", "172.18.0.3"), peerNode("n3", "172.18.0.4"))
	awaitPeers(t, l, "map[n2:[172.18.0.3] n3:[172.18.0.4]]", "n2", "n3")
	refused.Store(true)
	for _, n := range []*corev1.Node{peerNode("n2", "172.18.0.5"), peerNode("n3", "172.18.0.6")} {
		if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitPeers(t, l, "map[n2:[172.18.0.3] n3:[172.18.0.6]]", "n2", "n3")
	refused.Store(false)
	if err := client.CoreV1().Nodes().Delete(t.Context(), "n3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPeers(t, l, "map[n2:[172.18.0.5]]", "n2", "n3")
}

// Of a Node that can't be read, there is none of, or that has no address the API
// server is asked ever more seldom; an error is told when it begins, and when it is
// of another kind, whatever its text is.
func TestPeersRetry(t *testing.T) {
	p := newPeers()
	p.byName["n2"] = &peer{}
	forbidden, gone := apierrors.NewForbidden(corev1.Resource("nodes"), "n2", errors.New("no rights")),
		apierrors.NewNotFound(corev1.Resource("nodes"), "n2")
	for i, step := range []struct {
		node          *corev1.Node
		err           error
		changed, tell bool
		wait          time.Duration
	}{
		{nil, errors.New("reset, from port 1"), true, true, 2 * time.Second},
		{nil, errors.New("reset, from port 2"), false, false, 4 * time.Second},
		{nil, forbidden, false, true, 8 * time.Second},
		{nil, gone, false, false, 16 * time.Second},
		{peerNode("n2"), nil, false, false, 32 * time.Second},
		{peerNode("n2"), nil, false, false, 64 * time.Second},
		{peerNode("n2"), nil, false, false, 128 * time.Second},
		{peerNode("n2"), nil, false, false, 256 * time.Second},
		{peerNode("n2"), nil, false, false, peerRefresh},
		{nil, forbidden, false, true, peerRefresh},
		{peerNode("n2", "172.18.0.3"), nil, true, false, 0},
		{nil, forbidden, false, true, 2 * time.Second},
		{nil, forbidden, false, false, 4 * time.Second},
		{peerNode("n2", "172.18.0.3"), nil, false, false, 0},
		{nil, gone, true, false, 2 * time.Second},
	} {
		before := time.Now()
		changed, tell := p.take("n2", step.node, step.err)
		known := p.byName["n2"]
		if changed != step.changed || tell != step.tell || known.wait != step.wait {
			t.Errorf("step %d: changed %v, to be told %v, again after %v; want %v, %v, %v", i, changed, tell, known.wait,
				step.changed, step.tell, step.wait)
		}
		if step.wait == 0 {
			step.wait = peerRefresh
		}
		if known.due.Before(before.Add(step.wait)) {
			t.Errorf("step %d: it is due at %v, want %v after %v or later", i, known.due, step.wait, before)
		}
	}
}

// Many Nodes are read again more seldom: all of them take as many questions as few.
func TestPeersMany(t *testing.T) {
	for n, want := range map[int]time.Duration{1: peerRefresh, peersRefreshed: peerRefresh,
		3 * peersRefreshed: 3 * peerRefresh} {
		p := newPeers()
		for i := range n {
			p.byName[fmt.Sprint("n", i)] = &peer{}
		}
		before := time.Now()
		p.take("n0", peerNode("n0", "172.18.0.3"), nil)
		if due := p.byName["n0"].due; due.Before(before.Add(want)) || due.After(time.Now().Add(want*6/5)) {
			t.Errorf("one of %d is due after %v, want %v to a fifth more", n, due.Sub(before), want)
		}
	}
}

// forbidNodes has the API refuse to tell some Nodes.
func forbidNodes(l *Watcher, which func(name string) bool) {
	l.clients.Kube.(*fake.Clientset).PrependReactor("get", "nodes",
		func(a k8stesting.Action) (bool, runtime.Object, error) {
			name := a.(k8stesting.GetAction).GetName()
			return which(name), nil, apierrors.NewForbidden(corev1.Resource("nodes"), name, errors.New("no rights"))
		})
}

// lines has what is logged, a line each.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

// Nodes that can't be read are told of together, once.
func TestPeersTold(t *testing.T) {
	told := make(lines, 100)
	l, client := startLocalWith(t, func(l *Watcher) {
		l.peers.refresh, l.log = 1, slog.New(slog.NewTextHandler(told, nil))
		forbidNodes(l, func(name string) bool { return name != "n3" })
	}, peerNode("n3", "172.18.0.4"))
	names := []string{"n2", "n3", "n4", "n5"}
	awaitPeers(t, l, "map[n3:[172.18.0.4]]", names...)
	if line := <-told; !strings.Contains(line, "peer=n2 others=2") || !strings.Contains(line, "no rights") {
		t.Errorf("it is logged: %s", line)
	}
	for n := gets(client, "n5"); gets(client, "n5") < n+3; { // they are read again and again
		awaitPeers(t, l, "map[n3:[172.18.0.4]]", names...)
	}
	if len(told) > 0 {
		t.Errorf("it is logged again: %s", <-told)
	}
}
