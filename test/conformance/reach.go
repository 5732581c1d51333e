package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// subnetsAnnotation is the annotation with a node's subnets: {"default":["10.244.1.0/24"]}.
const subnetsAnnotation = "k8s.ovn.org/node-subnets"

// reachPods lets the API server, whose machine is not a node, reach pods at their first address: some specs need it as
// a proxy to pods. Its packets go through the pod's node, and pods see the node's address, as if the API server ran on
// a node.
func (b *bed) reachPods(ctx context.Context) error {
	client, err := b.Control.Client()
	if err != nil {
		return err
	}
	from := b.Control.Config.Addrs[0].Addr()
	for _, n := range b.Nodes {
		object, err := client.CoreV1().Nodes().Get(ctx, n.Spec.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("asking for node %s: %w", n.Spec.Name, err)
		}
		subnet, err := firstSubnet(object.Annotations[subnetsAnnotation])
		if err != nil {
			return fmt.Errorf("reading annotation %s of node %s: %w", subnetsAnnotation, n.Spec.Name, err)
		}
		if _, err := n.Run(ctx, "iptables", "-t", "nat", "-A", "POSTROUTING", "-s", from.String(), "-d", subnet.String(),
			"-j", "MASQUERADE"); err != nil {
			return err
		}
		if _, err := b.Control.Run(ctx, "ip", "route", "replace", subnet.String(), "via",
			n.Config.Addrs[0].Addr().String()); err != nil {
			return err
		}
	}
	return nil
}

func firstSubnet(annotation string) (netip.Prefix, error) {
	var networks map[string][]netip.Prefix
	if err := json.Unmarshal([]byte(annotation), &networks); err != nil {
		return netip.Prefix{}, fmt.Errorf("parsing %q: %w", annotation, err)
	}
	if len(networks["default"]) == 0 {
		return netip.Prefix{}, fmt.Errorf("%q: want a subnet of network \"default\"", annotation)
	}
	return networks["default"][0], nil
}
