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
// counts only if the master could have written it: with addresses for pods in this node's subnets in the network, the
// MAC and the gateways that follow from them, no routes, and no address there that an older pod of this node has.
func (s *Server) networkOf(ctx context.Context, in cluster.Attachment, p local.Pod) (annotation.PodNetwork, error) {
	network, ok, err := annotation.PodNetworkIn(p.Network, in.Key())
	if err != nil {
		return network, err
	}
	if !ok {
		return network, fmt.Errorf("%s: it has no entry %q", annotation.PodNetworks, in.Key())
	}
	settings, err := s.settings(ctx)
	if err != nil {
		return network, err
	}
	subnets, _, err := annotation.NodeSubnetsIn(settings.NodeSubnets, in.Network)
	if err != nil {
		return network, err
	}
	if err = checkNetwork(network, subnets, in.Interface); err == nil {
		err = checkOthers(in, p, network, s.Pods.LocalPods())
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", annotation.PodNetworks, err)
	}
	return network, err
}

// checkNetwork is why a pod on a node with these subnets can't have the attachment.
func checkNetwork(n annotation.PodNetwork, subnets []netip.Prefix, iface string) error {
	if len(n.IPs) != len(subnets) || len(subnets) == 0 {
		return fmt.Errorf("ip_addresses: %v: want one address in each of the node's subnets %v", n.IPs, subnets)
	}
	numbers := make([]uint64, len(subnets))
	for i, ip := range n.IPs {
		var err error
		if numbers[i], err = subnet.PodHost(subnets[i], ip); err != nil {
			return fmt.Errorf("ip_addresses: %w", err)
		}
	}
	if want := subnet.Attachment(subnets, numbers, iface); !cluster.SamePodNetwork(n, want) {
		return fmt.Errorf("mac_address %s, gateway_ips %v, routes %v: want %s, %v and none", n.MAC, n.Gateways, n.Routes,
			want.MAC, want.Gateways)
	}
	return nil
}

// checkOthers is the error that an older pod, or an earlier interface of the pod, has one of the addresses in the
// network. The master decides in this order, too.
func checkOthers(in cluster.Attachment, p local.Pod, n annotation.PodNetwork, others []local.Pod) error {
	taken := map[netip.Addr]bool{}
	for _, a := range cluster.PodAddrs(n) {
		taken[a] = true
	}
	for _, o := range others {
		age := cmp.Or(cmp.Compare(o.Created, p.Created), cluster.CompareNames(nameOf(o), nameOf(p)))
		if o.Network == "" || o.Released || age > 0 {
			continue
		}
		for iface, theirs := range annotation.PodNetworksIn(o.Network, in.Network) {
			// A network has either the interfaces that Kubernetes asks for or further ones: others are nobody's.
			if (iface == "") != (in.Interface == "") || o.UID == p.UID && iface >= in.Interface {
				continue
			}
			for _, a := range cluster.PodAddrs(theirs) {
				if taken[a] {
					return fmt.Errorf("ip_addresses: %s is the address of the older pod %s", a, nameOf(o))
				}
			}
		}
	}
	return nil
}

func nameOf(p local.Pod) cluster.Name { return cluster.Name{Namespace: p.Namespace, Name: p.Name} }

// confirm checks once more, before the answer, that the pod still has the attachment with which it was made.
func (s *Server) confirm(
	ctx context.Context, in cluster.Attachment, ref podRef, pod local.Pod, made annotation.PodNetwork,
) error {
	var why error
	// The callback accepts at once, so that there is no wait and no error.
	_ = s.Pods.WaitPod(ctx, pod.Namespace, pod.Name, func(p local.Pod, ok bool) bool {
		why = errPodGone
		if ok && p.UID == pod.UID {
			var now annotation.PodNetwork
			if now, why = s.networkOf(ctx, in, p); why == nil && !cluster.SamePodNetwork(now, made) {
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
