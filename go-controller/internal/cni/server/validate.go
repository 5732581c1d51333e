package server

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/subnet"
)

// networkOf is the attachment that a pod's annotation has. Who may create pods may have written the annotation. So it
// counts only if the master could have written it: with addresses for pods in this node's subnets, the MAC and the
// gateways that follow from them, no routes, and no address that an older pod of this node has.
func (s *Server) networkOf(ctx context.Context, p local.Pod) (annotation.PodNetwork, error) {
	network, err := annotation.ParsePodNetworks(p.Network)
	if err != nil {
		return network, err
	}
	settings, err := s.settings(ctx)
	if err != nil {
		return network, err
	}
	if err = checkNetwork(network, settings.Subnets); err == nil {
		err = checkOthers(p, network, s.Pods.LocalPods())
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", annotation.PodNetworks, err)
	}
	return network, err
}

// checkNetwork is why a pod on a node with these subnets can't have the attachment.
func checkNetwork(n annotation.PodNetwork, subnets []netip.Prefix) error {
	if len(n.IPs) != len(subnets) {
		return fmt.Errorf("ip_addresses: %v: want one address in each of the node's subnets %v", n.IPs, subnets)
	}
	numbers := make([]uint64, len(subnets))
	for i, ip := range n.IPs {
		var err error
		if numbers[i], err = subnet.PodHost(subnets[i], ip); err != nil {
			return fmt.Errorf("ip_addresses: %w", err)
		}
	}
	if want := subnet.Attachment(subnets, numbers); !cluster.SamePodNetwork(n, want) {
		return fmt.Errorf("mac_address %s, gateway_ips %v, routes %v: want %s, %v and none", n.MAC, n.Gateways, n.Routes,
			want.MAC, want.Gateways)
	}
	return nil
}

// checkOthers is the error that an older pod has one of the addresses. The master decides by age, too.
func checkOthers(p local.Pod, n annotation.PodNetwork, others []local.Pod) error {
	taken := map[netip.Addr]bool{}
	for _, a := range cluster.PodAddrs(n) {
		taken[a] = true
	}
	for _, o := range others {
		if o.Network == "" || o.Released || o.UID == p.UID || cmp.Or(cmp.Compare(o.Created, p.Created),
			cluster.CompareNames(nameOf(o), nameOf(p))) > 0 {
			continue
		}
		theirs, err := annotation.ParsePodNetworks(o.Network)
		if err != nil {
			continue // the master writes it anew
		}
		for _, a := range cluster.PodAddrs(theirs) {
			if taken[a] {
				return fmt.Errorf("ip_addresses: %s is the address of the older pod %s", a, nameOf(o))
			}
		}
	}
	return nil
}

func nameOf(p local.Pod) cluster.Name { return cluster.Name{Namespace: p.Namespace, Name: p.Name} }

// confirm checks once more, before the answer, that the pod still has the attachment with which it was made.
func (s *Server) confirm(ctx context.Context, ref podRef, pod local.Pod, made annotation.PodNetwork) error {
	var why error
	// The callback accepts at once, so that there is no wait and no error.
	_ = s.Pods.WaitPod(ctx, pod.Namespace, pod.Name, func(p local.Pod, ok bool) bool {
		why = errPodGone
		if ok && p.UID == pod.UID {
			var now annotation.PodNetwork
			if now, why = s.networkOf(ctx, p); why == nil && !cluster.SamePodNetwork(now, made) {
				why = errNetworkChanged
			}
		}
		return true
	})
	if why != nil {
		return cniError(protocol.CodeTryAgain, why.Error(), "the network of pod %s is no longer the one that was set up", ref)
	}
	return nil
}
