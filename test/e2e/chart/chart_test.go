package chart

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// installed is a cluster that helm has installed Northbound on, with a pod on each node and a Service.
type installed struct {
	*sandbox.Cluster
	pods    []string
	streams []*machines.Stream // pings between the first and the last pod
	bare    map[string]string  // what each node and the API server had before the installation
}

// TestChart installs the chart and does to it what an operator would.
func TestChart(t *testing.T) {
	c := &installed{}
	c.Cluster = machines.UpWith(t, sandbox.Options{Name: "chart", Gateways: 1, DualStack: true,
		Install: sandbox.InstallChart, BeforeInstall: c.lookBefore, Taint: taint})
	t.Run("doctor", c.doctor)
	t.Run("taint", c.untainted)
	t.Run("pods", c.makePods)
	t.Run("service", c.service)
	t.Run("gateways", c.gateways)
	t.Run("from outside", c.fromOutside)
	t.Run("policies", c.policies)
	t.Run("plan", func(t *testing.T) { machines.InSync(t, c.Cluster) })
	t.Run("kubectl northbound", c.diagnostics)
	t.Run("certificates", c.certificates)
	c.streams = c.pings(t)
	machines.MoreReplies(t, c.streams, 10)
	before := c.addresses(t)
	t.Run("pods of the control plane", c.replaced)
	t.Run("new authorities", c.newAuthorities)
	t.Run("lost databases", c.loseDatabases)
	// While the chart is removed, its roles may go before its pods.
	if err := machines.CheckRights(c.Cluster); err != nil {
		t.Error(err)
	}
	t.Run("uninstall", c.uninstall)
	if after := c.addresses(t); !slices.Equal(before, after) {
		t.Errorf("addresses of pods were %v, are %v", before, after)
	}
	t.Run("commands", c.commands)
	t.Run("tunnels", c.tunnels)
	t.Run("backup", c.backup)
	t.Run("three databases", c.threeDatabases)
	t.Run("removal", c.removal)
}

// kubectl runs kubectl in the chart's namespace.
func (c *installed) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return machines.Kubectl(t, c.Cluster, "", append([]string{"--namespace", sandbox.Namespace}, args...)...)
}

// inAgent runs a shell command in the agent's container on a node.
func (c *installed) inAgent(ctx context.Context, t *testing.T, name, command string) (string, error) {
	t.Helper()
	n, err := c.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return machines.InAgent(ctx, c.Cluster, n, "bash", "-c", command)
}

// doctor asks each node's doctor, in the agent's container.
func (c *installed) doctor(t *testing.T) {
	for _, n := range c.Nodes {
		// A path is measured between nodes that have just met.
		machines.Eventually(t, "the doctor of "+n.Spec.Name, func(ctx context.Context) string {
			out, err := c.inAgent(ctx, t, n.Spec.Name, "ovnkube doctor")
			if err != nil {
				return fmt.Sprintf("%v\n%s", err, out)
			}
			return ""
		})
	}
}

// makePods makes a pod on each node, and their Service. 10.111 is in kubeadm's default range, 10.96.0.0/12.
func (c *installed) makePods(t *testing.T) {
	c.pods = machines.EchoPods(t, c.Cluster, "10.111.200.7", "fd02::6f")
}

// service asks the Service by each family.
func (c *installed) service(t *testing.T) {
	if ips := machines.Addresses(t, c.Cluster, "service", "echo", "{.spec.clusterIPs[*]}"); len(ips) != 2 {
		t.Fatalf("Service echo has %v, want an address of each family", ips)
	}
	machines.EchoAnswers(t, c.Cluster, c.pods)
	// The API server's ranges are those of kubeadm. Without them, ovnkube's default would be one, too.
	if out := machines.Run(t, c.Nodes[1], "ip", "route", "show", "10.96.0.0/16"); out != "" {
		t.Errorf("no Service has an address of 10.96.0.0/16, and a node leads it to OVN: %s", out)
	}
}

// addresses lists the pods' addresses.
func (c *installed) addresses(t *testing.T) (out []netip.Addr) {
	t.Helper()
	for _, p := range c.pods {
		out = append(out, machines.PodIPs(t, c.Cluster, p)...)
	}
	return out
}

// pings sends ten packets a second between two nodes, in each family.
func (c *installed) pings(t *testing.T) []*machines.Stream {
	t.Helper()
	return c.pingsEvery(t, "0.1")
}

// pingsEvery sends a packet in each interval, which is in seconds.
func (c *installed) pingsEvery(t *testing.T, interval string) (all []*machines.Stream) {
	t.Helper()
	from, to := c.pods[0], c.pods[len(c.pods)-1]
	for _, ip := range machines.PodIPs(t, c.Cluster, to) {
		all = append(all, machines.StartStream(t, fmt.Sprintf("ping from %s to %s", from, ip),
			func(ctx context.Context) *exec.Cmd {
				return c.Kubectl(ctx, "exec", from, "--", "ping", "-i", interval, ip.String())
			}))
	}
	return all
}

// settled waits until the chart's pods are ready and the database holds what is wanted. No packet may have been lost.
func (c *installed) settled(t *testing.T) {
	t.Helper()
	if err := c.Rollout(t.Context()); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, c.Cluster)
	machines.MoreReplies(t, c.streams, 10)
	machines.NoGaps(t, c.streams)
}

// replaced deletes the pods of the control plane. Their successors find everything as it was.
func (c *installed) replaced(t *testing.T) {
	for _, app := range []string{"ovn-db", "ovnkube-master", "ovnkube-signer"} {
		c.kubectl(t, "delete", "pod", "--selector", "app="+app)
	}
	c.settled(t)
	c.newPod(t, "after-deletion")
}

// newPod makes a pod and removes it. flags are those of kubectl run. The streams must have lost nothing before. While a
// pod's link comes or goes, they may lose packets (docs/operate/upgrade.md, Limits): newPod waits until it has gone,
// and what they lost meanwhile does not count.
func (c *installed) newPod(t *testing.T, name string, flags ...string) {
	t.Helper()
	machines.MoreReplies(t, c.streams, 1)
	machines.NoGaps(t, c.streams)
	machines.Kubectl(t, c.Cluster, "", append([]string{"run", name, "--image=localhost/echo:1", "--restart=Never"},
		flags...)...)
	wait := []string{"wait", "--for=condition=Ready", "--timeout=2m", "pod/" + name}
	if out, err := c.Kubectl(t.Context(), wait...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, machines.Kubectl(t, c.Cluster, "", "describe", "pod", name))
	}
	machines.Kubectl(t, c.Cluster, "", "delete", "pod", name, "--grace-period=1", "--timeout=60s")
	machines.MoreReplies(t, c.streams, 10) // the next reply tells what was lost before it
	for _, s := range c.streams {
		t.Log(s.Reset())
	}
}

// commands are those of the page that need no flags, and those for a change.
func (c *installed) commands(t *testing.T) {
	o := c.operator(t)
	for _, heading := range []string{"## What runs where", "## Change"} {
		for _, block := range blocks(t, heading) {
			o.does(t, block)
		}
	}
	c.streams = nil
	c.settled(t)
}

// uninstall removes the chart, while running pods keep their network, and installs it again. ovn-controller answers
// neighbour solicitations, so that IPv6 may pause while there is none: only IPv4 must not.
func (c *installed) uninstall(t *testing.T) {
	install := blocks(t, "## Install")
	if len(install) != 3 {
		t.Fatalf("the page has the commands %q, want three blocks", install)
	}
	o := c.operator(t)
	o.does(t, blocks(t, "### Only stop it")[0])
	c.kubectl(t, "wait", "--for=delete", "pod", "--all", "--timeout=60s")
	machines.MoreReplies(t, c.streams[:1], 10)
	o.does(t, install[1]) // the first block makes image and chart
	o.does(t, install[2])
	all := c.streams
	c.streams = all[:1]
	c.settled(t)
	machines.MoreReplies(t, all, 10)
	c.newPod(t, "after-install")
}

// certificates shows what a certificate and the identity of a node are good for.
func (c *installed) certificates(t *testing.T) {
	const keys = "-p $NORTHBOUND_SB_PRIVKEY -c $NORTHBOUND_SB_CERT -C $NORTHBOUND_SB_CACERT --timeout=5 --db=ssl:"
	server := c.Nodes[0].Config.Addrs[0].Addr().String()
	for _, k := range []struct {
		name, command, want string
		fails               bool
	}{
		{"reads the Southbound database", "ovn-sbctl " + keys + server + ":6642 --columns=name --bare list chassis", "n3",
			false},
		{"removes another chassis", "ovn-sbctl " + keys + server + ":6642 chassis-del n3", "permission", true},
		{"opens the Northbound database", "ovn-nbctl " + keys + server + ":6641 show", "", true},
		{"is another node", "timeout 10 ovnkube certificates --for=node --node-name=n3 --directory=/tmp/n3 --once",
			"denied", true},
		{"is the master", "timeout 10 ovnkube certificates --for=master --directory=/tmp/master --once", "denied", true},
	} {
		out, err := c.inAgent(t.Context(), t, "n2", k.command)
		if (err != nil) != k.fails || !strings.Contains(out, k.want) {
			t.Errorf("node n2 %s: %v, want an error: %t, and %q in:\n%s", k.name, err, k.fails, k.want, out)
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Errorf("node n2 %s: %v", k.name, err)
		}
	}
	for _, account := range []string{"ovnkube-node", "ovnkube-master", "ovn-db", "default"} {
		out, err := c.Kubectl(t.Context(), "--namespace", sandbox.Namespace, "auth", "can-i", "get",
			"secret/ovn-nb-ca", "--as", "system:serviceaccount:"+sandbox.Namespace+":"+account).Output()
		if err == nil || strings.TrimSpace(string(out)) != "no" {
			t.Errorf("ServiceAccount %s may read the authority's key: %q, %v", account, out, err)
		}
	}
	denied := machines.Kubectl(t, c.Cluster, "", "get", "certificatesigningrequests", "--output",
		`jsonpath={range .items[*]}{.status.conditions[?(@.type=="Denied")].message}{"\n"}{end}`)
	for _, want := range []string{
		`subject "CN=n3": want "CN=n2"`, "may have no certificate of signer northbound.io/ovn-nb",
	} {
		if !strings.Contains(denied, want) {
			t.Errorf("no request was denied with %q, but with:\n%s", want, denied)
		}
	}
}
