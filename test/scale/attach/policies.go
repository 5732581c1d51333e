package attach

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Kube is a client of the cluster's API server.
func (b *Bed) Kube() kubernetes.Interface { return b.kube }

// NodeName is the name of the node.
func (b *Bed) NodeName() string { return b.node.Spec.Name }

// Plug gives pods of the node an interface without a network namespace behind it, which is enough for ovn-controller to
// make their flows. It returns when that has made them.
func (b *Bed) Plug(ctx context.Context, pods []*corev1.Pod) error {
	var ops []any
	var installed []<-chan struct{}
	for i, p := range pods {
		name, iface, port := fmt.Sprintf("plug%d", i), fmt.Sprintf("iface%d", i), fmt.Sprintf("port%d", i)
		ops = append(ops,
			object{"op": "insert", "table": "Interface", "uuid-name": iface, "row": object{"name": name, "type": "internal",
				"external_ids": ovsMap("iface-id", p.Namespace+"_"+p.Name, "iface-id-ver", string(p.UID))}},
			object{"op": "insert", "table": "Port", "uuid-name": port, "row": object{"name": name,
				"interfaces": []string{"named-uuid", iface}}},
			object{"op": "mutate", "table": "Bridge", "where": []any{[]any{"name", "==", "br-int"}},
				"mutations": []any{[]any{"ports", "insert", []string{"named-uuid", port}}}})
		installed = append(installed, b.ovs.installed(name))
	}
	if err := b.ovs.wire.Transact("Open_vSwitch", ops...); err != nil {
		return fmt.Errorf("adding interfaces of %d pods: %w", len(pods), err)
	}
	for i, done := range installed {
		select {
		case <-done:
		case <-b.ovs.wire.Ended():
			return fmt.Errorf("waiting for ovn-installed of plug%d: the connection to Open vSwitch's database ended", i)
		case <-ctx.Done():
			return fmt.Errorf("waiting for ovn-installed of plug%d: %w", i, context.Cause(ctx))
		}
	}
	return nil
}
