package networks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// latestKill is how long after pods have been made an agent is killed at most. An ADD takes some tenths of a second.
const latestKill = 1500 * time.Millisecond

// killed is a cluster whose agents are killed. The pods of two namespaces have primary networks with the same subnets,
// those of the third are in the cluster's own network.
type killed struct {
	*sandbox.Cluster
	interfaces map[string]string // by namespace: the interface in its primary network; "" in the cluster's own
	streams    []*machines.Stream
	random     *rand.Rand
}

// TestAgentsKilled kills the agents of both nodes again and again while pods of tenants come and go. Pods that run keep
// their addresses and reach each other, pods that come are served, and nothing is left of those that go. AGENT_KILLS
// says how often, CHAOS_SEED at which moments. (Open vSwitch's userspace datapath loses packets while links come and
// go. TestAgentRestartLosesNoPacket says that agents' deaths alone cost none.)
func TestAgentsKilled(t *testing.T) {
	kills, seed := machines.Number(t, "AGENT_KILLS", 6), machines.Number(t, "CHAOS_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CHAOS_SEED=%d", seed)
	c := machines.Up(t, sandbox.Options{Name: "killed-test", Nodes: 2, DualStack: true})
	k := &killed{Cluster: c, random: rand.New(rand.NewPCG(seed, 0)),
		interfaces: map[string]string{"red": "ovn-udn1", "blue": "ovn-udn1", "plain": ""}}
	machines.Kubectl(t, c, "", "apply", "-f", crd)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"network-attachment-definitions.k8s.cni.cncf.io")
	machines.Kubectl(t, c, fmt.Sprintf(primaryTenant, "red", layer2)+fmt.Sprintf(primaryTenant, "blue", layer3)+
		"{apiVersion: v1, kind: Namespace, metadata: {name: plain}}\n", "apply", "-f", "-")
	k.apply(t, "stays")
	k.ready(t, "stays")
	stay, left := k.addresses(t, "stays"), k.onNodes(t)
	k.startStreams(t)
	machines.MoreReplies(t, k.streams, 10)
	for i := range kills {
		k.round(t, i, stay)
		if t.Failed() {
			return
		}
	}
	for _, s := range k.streams {
		t.Log(s.Reset())
	}
	for ns := range k.interfaces {
		machines.Kubectl(t, k.Cluster, "", "delete", "pod", "-n", ns, "-l", "group,group!=stays", "--timeout=60s")
	}
	machines.Eventually(t, "what is left of the pods on the nodes", func(context.Context) string {
		if now := k.onNodes(t); now != left {
			return fmt.Sprintf("before:\n%s\nand now:\n%s", left, now)
		}
		return ""
	})
	machines.InSync(t, c)
}

// podsOf is the manifest of a pod on each node in each namespace.
func (k *killed) podsOf(name string) (out string) {
	for ns := range k.interfaces {
		for _, n := range k.Nodes {
			out += probedPod(ns, name+"-"+n.Spec.Name, n.Spec.Name, fmt.Sprintf("group: %q", name))
		}
	}
	return out
}

func (k *killed) apply(t *testing.T, name string) {
	t.Helper()
	machines.Kubectl(t, k.Cluster, k.podsOf(name), "apply", "-f", "-")
}

func (k *killed) ready(t *testing.T, name string) {
	t.Helper()
	for ns := range k.interfaces {
		machines.Kubectl(t, k.Cluster, "", "wait", "-n", ns, "--for=condition=Ready", "--timeout=120s", "pod", "-l",
			"group="+name)
	}
}

// on is the addresses of a pod in the network over which it talks.
func (k *killed) on(t *testing.T, ns, pod string) []netip.Addr {
	t.Helper()
	if link := k.interfaces[ns]; link != "" {
		return on(t, k.Cluster, ns, pod, link)
	}
	return k.own(t, ns, pod)
}

// own is the addresses of a pod in the cluster's own network.
func (k *killed) own(t *testing.T, ns, pod string) (out []netip.Addr) {
	t.Helper()
	said := machines.Kubectl(t, k.Cluster, "", "get", "pod", "-n", ns, pod, "-o", "jsonpath={.status.podIPs[*].ip}")
	for ip := range strings.FieldsSeq(said) {
		out = append(out, netip.MustParseAddr(ip))
	}
	if len(out) != 2 {
		t.Fatalf("status.podIPs of pod %s/%s: %q, want two addresses", ns, pod, said)
	}
	return out
}

// addresses are those of a group's pods in the networks over which they talk, by namespace and name.
func (k *killed) addresses(t *testing.T, name string) map[string][]netip.Addr {
	t.Helper()
	out := map[string][]netip.Addr{}
	for ns := range k.interfaces {
		for _, n := range k.Nodes {
			pod := name + "-" + n.Spec.Name
			out[ns+"/"+pod] = k.on(t, ns, pod)
		}
	}
	return out
}

// startStreams has a pod on n1 send to one on n2, in each network, in both address families.
func (k *killed) startStreams(t *testing.T) {
	t.Helper()
	for ns := range k.interfaces {
		for _, to := range k.on(t, ns, "stays-n2") {
			s, end, err := machines.NewStream(fmt.Sprintf("%s to %s", ns, to), func(ctx context.Context) *exec.Cmd {
				return k.Kubectl(ctx, "exec", "-n", ns, "stays-n1", "--", "ping", "-n", "-i", "0.05", to.String())
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(end)
			k.streams = append(k.streams, s)
		}
	}
}

// round makes pods, deletes those of the round before, and kills an agent meanwhile.
func (k *killed) round(t *testing.T, i uint64, stay map[string][]netip.Addr) {
	t.Helper()
	name, former := fmt.Sprintf("round%d", i), fmt.Sprintf("round%d", i-1)
	k.apply(t, name)
	for ns := range k.interfaces {
		machines.Kubectl(t, k.Cluster, "", "delete", "pod", "-n", ns, "-l", "group="+former, "--wait=false")
	}
	after := time.Duration(k.random.Int64N(int64(latestKill)))
	<-time.After(after) // the moment of the kill is the random part of this test
	victim := k.Nodes[i%2].Spec.Name + "/" + node.Agent
	if err := k.Restart(t.Context(), victim, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	machines.MoreReplies(t, k.streams, 10)
	k.ready(t, name)
	t.Logf("%s: %s was killed after %s", name, victim, after)
	if now := k.addresses(t, "stays"); fmt.Sprint(now) != fmt.Sprint(stay) {
		t.Errorf("%s: the pods that stay had %v, and have %v", name, stay, now)
	}
	k.noneTwice(t, name, "stays", name)
	// A pod that came while an agent was away talks like any other.
	for ns := range k.interfaces {
		answers(t, k.Cluster, ns, name+"-n1", name+"-n2", k.on(t, ns, name+"-n2"))
	}
}

// noneTwice fails if two pods of these groups have an address in one network. All have one in the cluster's own.
func (k *killed) noneTwice(t *testing.T, when string, groups ...string) {
	t.Helper()
	holders := map[string]string{}
	hold := func(network, pod string, addrs []netip.Addr) {
		for _, a := range addrs {
			if other := holders[network+a.String()]; other != "" {
				t.Errorf("%s: %s and %s both have %s", when, pod, other, a)
			}
			holders[network+a.String()] = pod
		}
	}
	for _, group := range groups {
		for ns, link := range k.interfaces {
			for _, n := range k.Nodes {
				pod := group + "-" + n.Spec.Name
				hold("", ns+"/"+pod, k.own(t, ns, pod))
				if link != "" {
					hold(ns, ns+"/"+pod, k.on(t, ns, pod))
				}
			}
		}
	}
}

// onNodes lists the interfaces of pods, and the ports of the integration bridges.
func (k *killed) onNodes(t *testing.T) (out string) {
	t.Helper()
	for _, n := range k.Nodes {
		var lines []string
		for _, command := range [][]string{{"ip", "-o", "link", "show", "type", "veth"},
			{"ovs-vsctl", "--no-heading", "--columns=name", "find", "Interface", "external_ids:iface-id!=\"\""}} {
			for line := range strings.Lines(machines.Run(t, n, command...)) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		out += n.Spec.Name + ":\n" + strings.Join(lines, "\n") + "\n"
	}
	return out
}
