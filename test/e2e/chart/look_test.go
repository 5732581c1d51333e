package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox"
)

// nodeScript prints all that Northbound may change on a node but nftables, whose program nodes do not have.
const nodeScript = `
for p in ip ovs-vsctl sysctl; do command -v $p >/dev/null || exit 1; done
ip -o addr | sed 's/^[0-9]*: //; s/valid_lft.*//' | grep inet | sort
ip -o link | cut -d: -f2 | sort
for f in -4 -6; do ip $f rule; ip $f route show table all; ip $f neigh show nud permanent; done | sort
ls -A /run/openvswitch
if [ -e /etc/openvswitch/conf.db ]; then
ovs-vsctl show | tail -n +2
ovs-vsctl --no-headings --columns=ssl list Open_vSwitch
ovs-ofctl --no-stats dump-flows br-phys 2>/dev/null
ovs-vsctl get Open_vSwitch . external_ids | tr -d '{}" ' | tr , '\n' | grep -v '^hostname='
fi
sysctl -a 2>/dev/null | grep 'forward\|accept_ra \|rp_filter\|arp_ignore' | sort
ls -A /etc/cni/net.d /opt/cni/bin /etc/openvswitch
cat /etc/openvswitch/system-id.conf
ls -d /run/ovn-kubernetes /var/lib/northbound/certificates /var/lib/northbound/ovn
ls -A /var/lib/northbound/nics
true`

// clusterScripts print, with kubectl, what Northbound may leave at the API server.
func clusterScripts() []string {
	return []string{
		`get nodes,pods --all-namespaces --output=jsonpath={.items[*].metadata.annotations}`,
		`get nodes --output=jsonpath={.items[*].status.conditions[?(@.type=="NetworkUnavailable")]}`,
		`get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,` +
			`priorityclasses --output=name`,
		`get roles,rolebindings,configmaps,secrets,serviceaccounts,leases,services,endpointslices,controllerrevisions,` +
			`jobs --all-namespaces --output=name`,
		`get certificatesigningrequests --output=name`,
	}
}

// registered waits until every node's kubelet has made its Node and its Lease.
func registered(ctx context.Context, c *sandbox.Cluster) error {
	for _, n := range c.Nodes {
		for _, object := range []string{"node/" + n.Spec.Name, "lease/" + n.Spec.Name} {
			args := []string{"wait", "--for=create", object, "--namespace", "kube-node-lease", "--timeout=60s"}
			if out, err := c.Kubectl(ctx, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("waiting for %s: %w: %s", object, err, out)
			}
		}
	}
	return nil
}

// look prints what each node has in its network, and the API server in objects: one text for each, by what it is about.
func look(ctx context.Context, c *sandbox.Cluster) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range c.Nodes {
		text, err := n.Run(ctx, "sh", "-c", nodeScript)
		if err != nil {
			return nil, fmt.Errorf("looking at node %s: %w", n.Spec.Name, err)
		}
		out["node "+n.Spec.Name] = text
		rules, err := n.NetworkCommand(ctx, "nft", "--stateless", "list", "ruleset").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the nftables rules of node %s: %w", n.Spec.Name, err)
		}
		out["nftables of "+n.Spec.Name] = string(rules)
	}
	for _, s := range clusterScripts() {
		text, err := c.Kubectl(ctx, strings.Fields(s)...).Output()
		if err != nil {
			return nil, fmt.Errorf("running kubectl %s: %w", s, err)
		}
		out["kubectl "+s] = string(text)
	}
	return out, nil
}

// differing shows the lines that one of two texts has more often, a line for each.
func differing(now, before string) string {
	more := map[string]int{}
	for l := range strings.SplitSeq(now, "\n") {
		more[l]++
	}
	for l := range strings.SplitSeq(before, "\n") {
		more[l]--
	}
	var out []string
	for l, n := range more {
		switch {
		case n > 0:
			out = append(out, "+ "+l)
		case n < 0:
			out = append(out, "- "+l)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
