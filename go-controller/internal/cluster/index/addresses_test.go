package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// addressesOf is what Addresses must list, worked out from the whole state.
func addressesOf(s *cluster.State, namespace string, is4 bool) []string {
	var out []string
	for n, p := range s.Pods {
		if n.Namespace != namespace || !p.WantsNetwork() {
			continue
		}
		for _, a := range cluster.PodAddrs(s.PodNetworks[cluster.PodPort{Pod: n}]) {
			if a.Is4() == is4 {
				out = append(out, a.String())
			}
		}
	}
	slices.Sort(out)
	return out
}

// Addresses lists what the whole state says, whatever happened and whenever somebody asked.
func TestAddressesAfterAnyPath(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := NewState(config.DefaultCluster())
		for step := range 300 {
			i := r.IntN(12)
			name := cluster.Name{Namespace: []string{"a", "b"}[r.IntN(2)], Name: fmt.Sprintf("p%d", i)}
			pod := &cluster.Pod{Name: name, UID: fmt.Sprint(r.IntN(2)), Node: "n", Finished: r.IntN(4) == 0,
				HostNetwork: r.IntN(6) == 0}
			number := byte(r.IntN(200))
			switch r.IntN(5) {
			case 0:
				s.Apply(cluster.Event{Ref: pod.Ref()})
			case 1:
				s.GrantPod(names.Own, cluster.PodPort{Pod: name}, nil)
			case 2, 3:
				// No two pods hold one address.
				ip4 := netip.AddrFrom4([4]byte{10, name.Namespace[0], byte(i), number})
				ip6 := netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 13: name.Namespace[0], 14: byte(i), 15: number})
				ips := []netip.Prefix{netip.PrefixFrom(ip4, 23), netip.PrefixFrom(ip6, 64)}
				s.GrantPod(names.Own, cluster.PodPort{Pod: name}, &annotation.PodNetwork{IPs: ips[:1+r.IntN(2)]})
			default:
				s.Apply(cluster.Event{Ref: pod.Ref(), New: pod})
			}
			if r.IntN(3) > 0 {
				continue // let changes gather
			}
			for _, ns := range []string{"a", "b", "c"} {
				for _, is4 := range []bool{true, false} {
					if got, want := AddressesOf(s).List(ns, is4), addressesOf(s, ns, is4); !slices.Equal(got, want) {
						t.Fatalf("seed %d step %d: namespace %s: %v, want %v", seed, step, ns, got, want)
					}
				}
			}
		}
	}
}

// An address that several have is in the list as long as one of them has it, whenever the list is asked for.
func TestAddressThatSeveralHave(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 80))
		var l addressList
		has := map[string]int{}
		for range 200 {
			a := fmt.Sprint("10.0.0.", r.IntN(5))
			switch {
			case has[a] < 3 && r.IntN(2) == 0:
				has[a]++
				l.change(a, 1)
			case has[a] > 0:
				if has[a]--; has[a] == 0 {
					delete(has, a)
				}
				l.change(a, -1)
			}
			if want := slices.Sorted(maps.Keys(has)); r.IntN(3) == 0 && !slices.Equal(l.list(), want) {
				t.Fatalf("seed %d: %v, want %v", seed, l.list(), want)
			}
		}
	}
}
