package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
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
ovs-vsctl get Open_vSwitch . external_ids | tr -d '{}" ' | tr , '\n' | grep -v '^hostname='
fi
sysctl -a 2>/dev/null | grep 'forward\|accept_ra \|rp_filter\|arp_ignore' | sort
ls -A /etc/cni/net.d /opt/cni/bin /etc/openvswitch
cat /etc/openvswitch/system-id.conf
ls -d /run/ovn-kubernetes /var/lib/northbound/certificates /var/lib/northbound/ovn
ls -A /var/lib/northbound/nics
true`

// clusterScripts print, with kubectl, what Northbound may leave at the API server.
var clusterScripts = []string{
	`get nodes,pods --all-namespaces --output=jsonpath={.items[*].metadata.annotations}`,
	`get nodes --output=jsonpath={.items[*].status.conditions[?(@.type=="NetworkUnavailable")]}`,
	`get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,priorityclasses ` +
		`--output=name`,
	`get roles,rolebindings,configmaps,secrets,serviceaccounts,leases,services,endpointslices,controllerrevisions,jobs ` +
		`--all-namespaces --output=name`,
	`get certificatesigningrequests --output=name`,
}

// lookBefore notes what is there before the installation, when all kubelets have registered.
func (c *installed) lookBefore(ctx context.Context, bare *sandbox.Cluster) (err error) {
	for _, n := range bare.Nodes {
		for _, object := range []string{"node/" + n.Spec.Name, "lease/" + n.Spec.Name} {
			args := []string{"wait", "--for=create", object, "--namespace", "kube-node-lease", "--timeout=60s"}
			if out, err := bare.Kubectl(ctx, args...).CombinedOutput(); err != nil {
				return fmt.Errorf("waiting for %s: %w: %s", object, err, out)
			}
		}
	}
	if err := registeredTainted(ctx, bare); err != nil {
		return err
	}
	c.bare, err = look(ctx, bare)
	return err
}

func look(ctx context.Context, c *sandbox.Cluster) (map[string]string, error) {
	out := map[string]string{}
	for _, n := range c.Nodes {
		text, err := n.Run(ctx, "sh", "-c", nodeScript)
		if err != nil {
			return nil, fmt.Errorf("looking at node %s: %w", n.Spec.Name, err)
		}
		out["node "+n.Spec.Name] = text
		tables, err := n.NetworkCommand(ctx, "nft", "list", "tables").Output()
		if err != nil {
			return nil, fmt.Errorf("listing nftables of node %s: %w", n.Spec.Name, err)
		}
		out["nftables of "+n.Spec.Name] = string(tables)
	}
	for _, s := range clusterScripts {
		text, err := c.Kubectl(ctx, strings.Fields(s)...).Output()
		if err != nil {
			return nil, fmt.Errorf("running kubectl %s: %w", s, err)
		}
		out["kubectl "+s] = string(text)
	}
	return out, nil
}

// removal takes Northbound away as the page says, and compares nodes and API server with what they were before it came.
// Then it installs Northbound again, without Helm.
func (c *installed) removal(t *testing.T) {
	o, remove, apply := c.operator(t), blocks(t, "## Remove"), blocks(t, "### Without Helm")
	if len(remove) != 3 || len(apply) != 1 {
		t.Fatalf("the page has the commands %q and %q, want three blocks and one", remove, apply)
	}
	o.does(t, remove[0])
	machines.Eventually(t, "the pods that are in the way", func(ctx context.Context) string {
		out, err := o.try(ctx, remove[1])
		const want = "pods on this node would lose their network"
		waiting := map[string]bool{}
		for _, l := range strings.Split(out, "\n") {
			if pod, line, ok := strings.Cut(l, " "); ok && strings.Contains(line, want) { // "[pod/NAME/cleanup] ..."
				waiting[pod] = true
			}
		}
		if err != nil || len(waiting) != len(c.Nodes) {
			return fmt.Sprintf("not every node says %q: %v\n%s", want, err, out)
		}
		return ""
	})
	machines.Kubectl(t, c.Cluster, "", "delete", "pods,services", "--selector", "app=echo", "--wait=false")
	machines.Kubectl(t, c.Cluster, "", "delete", "service", "echo")
	o.does(t, remove[2])
	c.asBefore(t)
	o.does(t, apply[0])
	c.streams = nil
	c.settled(t)
	c.newPod(t, "after-removal")
}

// asBefore waits until nodes and API server are as they were before the installation.
func (c *installed) asBefore(t *testing.T) {
	t.Helper()
	machines.Eventually(t, "nodes and API server as they were before the installation", func(context.Context) string {
		now, err := look(t.Context(), c.Cluster)
		if err != nil {
			return err.Error()
		}
		var out []string
		for what, text := range now {
			if d := differing(text, c.bare[what]); d != "" {
				out = append(out, what+":\n"+d)
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	})
}

// differing shows the lines that only one of two texts has, a line for each.
func differing(now, before string) string {
	var out []string
	n, b := strings.Split(now, "\n"), strings.Split(before, "\n")
	for _, l := range n {
		if !slices.Contains(b, l) {
			out = append(out, "+ "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(n, l) {
			out = append(out, "- "+l)
		}
	}
	return strings.Join(out, "\n")
}
