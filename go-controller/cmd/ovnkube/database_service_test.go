package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/database"
)

// TestServersFollow has a daemon end when a server of the database has moved, and not while a pod is away.
func TestServersFollow(t *testing.T) {
	name, port := "sb", int32(6642)
	nodes := []string{"n1", "n2"}
	at := func(addrs ...string) (out []discoveryv1.Endpoint) {
		for i, a := range addrs {
			out = append(out, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &nodes[i]})
		}
		return out
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: "a",
			Labels: map[string]string{discoveryv1.LabelServiceName: "ovn-db", database.CountLabel: "2"}},
		Ports:     []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints: at("172.18.0.10", "172.18.0.11"),
	}
	kube := fake.NewSimpleClientset(slice)
	s := &servers{service: database.Service{Namespace: "ovn-kubernetes", Name: "ovn-db", Port: "sb"},
		clients: &client.Clients{Kube: kube}, log: slog.New(slog.DiscardHandler)}
	var err error
	want := []string{"ssl:172.18.0.10:6642", "ssl:172.18.0.11:6642"}
	if s.found, _, err = s.look(t.Context()); err != nil || !slices.Equal(s.found, want) {
		t.Fatalf("look: %q, %v", s.found, err)
	}
	ended := make(chan error, 1)
	looked := 0
	work := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	go func() {
		ended <- runUntilOutdated(t.Context(), work, func(ctx context.Context, _ time.Duration) error {
			return s.follow(ctx, time.Millisecond)
		})
	}()
	change := func(addrs ...string) {
		now := slice.DeepCopy()
		now.Endpoints = at(addrs...)
		looked = len(kube.Actions())
		slices := kube.DiscoveryV1().EndpointSlices("ovn-kubernetes")
		if _, err := slices.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// One of two, none, and one that is new: the other one may be new, too, and is waited for.
	for _, addrs := range [][]string{{"172.18.0.11"}, nil, {"172.18.0.12"}} {
		change(addrs...)
		for end := time.Now().Add(10 * time.Second); len(kube.Actions()) < looked+5; {
			select {
			case err := <-ended:
				t.Fatalf("it ended while the Service had the endpoints %v: %v", addrs, err)
			case <-time.After(time.Millisecond):
			}
			if time.Now().After(end) {
				t.Fatal("nobody looks for the database's addresses")
			}
		}
	}
	change("172.18.0.11", "172.18.0.12")
	select {
	case err := <-ended:
		if !errors.Is(err, errMoved) || !strings.Contains(err.Error(), "ssl:172.18.0.12:6642") {
			t.Errorf("runUntilOutdated: %v, want %v, and the new address", err, errMoved)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on although the database has moved")
	}
}

// TestServiceFlags refuses an address beside a Service, and what is no name of a Service.
func TestServiceFlags(t *testing.T) {
	for _, k := range []struct{ args, want string }{
		{"plan --nb-service ovn-kubernetes/ovn-db --nb-address ssl:172.18.0.11:6641",
			"--nb-address and --nb-service: give one of them"},
		{"plan --nb-service ovn-db", "want NAMESPACE/NAME of a Service"},
		{"master --nb-service ovn-db", "want NAMESPACE/NAME of a Service"},
		{"node --node-name n1 --k8s-apiserver http://127.0.0.1:1 --sb-service a/b/c", "want NAMESPACE/NAME of a Service"},
		{"certificates --for somebody", `--for "somebody": want node, master or database`},
		{"database serve --database db --node-name n1", `--database: database "db": want nb or sb`},
		{"database serve --database nb", "--node-name: the name of the Node is missing"},
		{"database maintain --node-name n1 --service ovn-db", "want NAMESPACE/NAME of a Service"},
		{"certificates --for node", "--node-name: --for=node needs it"},
	} {
		app := newApp()
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		err := app.Run(append([]string{"ovnkube"}, strings.Fields(k.args)...))
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("ovnkube %s: %v, want %q", k.args, err, k.want)
		}
	}
}
