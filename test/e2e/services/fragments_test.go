package services

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// fragmented is a datagram size that needs two fragments in the pod network and between the nodes.
const fragmented = 2000

// fragments checks that a datagram of two fragments that starts a flow to a service reaches a backend, and its answer
// comes back. OVN's load balancers support that in the userspace datapath since 26.03. Older ones lose the datagram; if
// this test finds one that does not, docs/features/services.md must say so.
func (b bed) fragments(t *testing.T, all []*service) {
	t.Helper()
	system, err := sandbox.Provide(t.Context(), b.Options)
	if err != nil {
		t.Fatal(err)
	}
	arrives := !system.Release.Before(sandbox.Release{26, 3})
	pods := machines.PodIPs(t, b.Cluster, "backend-n2")
	all = slices.DeleteFunc(slices.Clone(all), func(s *service) bool {
		return s.internal != "Cluster" || s.external != "Cluster" || s.affinity != corev1.ServiceAffinityNone ||
			len(s.nodes) > 1
	})
	var asking sync.WaitGroup
	for _, c := range b.clients() {
		asking.Go(func() {
			for _, ip := range pods {
				if c.node != "" {
					c.mirror(t, "the pod itself", netip.AddrPortFrom(ip, podPort), true)
				}
			}
			for _, w := range b.ways() {
				if !asks(c, w) || !w.nodePort && w.name != clusterIP {
					continue
				}
				for _, s := range all {
					for _, to := range w.of(s) {
						c.mirror(t, fmt.Sprintf("%s of %s", w.name, s), to, arrives)
					}
				}
			}
		})
	}
	asking.Wait()
}

// mirror sends a large datagram from a socket of its own, several times if need be. One that is to arrive may only make
// the sender learn a link's MTU over IPv6. One that is to be lost may have the port of an earlier question, so that it
// starts no flow.
func (c client) mirror(t *testing.T, what string, to netip.AddrPort, arrives bool) {
	t.Helper()
	want := fmt.Sprintf("%d bytes\n", fragmented)
	for range 5 {
		out, err := c.Run(t.Context(), "", "mirror", to.String(), "1", fmt.Sprint(fragmented))
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Error(err) // it has not asked
			return
		}
		if came := err == nil && out == want; came == arrives {
			return
		}
	}
	t.Errorf("%s sends %d bytes to %s, %s: that they come back is %v, want %v", c.Name, fragmented, to, what, !arrives,
		arrives)
}
