package chart

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// databases are those of OVN, as their containers are called.
var databases = []struct{ container, name string }{{"nb", "OVN_Northbound"}, {"sb", "OVN_Southbound"}}

// threeDatabases goes from one server of each database to three, loses a leader, a disk, and two disks, and goes back
// to one. Pods that ping each other lose nothing.
func (c *installed) threeDatabases(t *testing.T) {
	o, page := c.operator(t), blocks(t, "## Three databases")
	if len(page) != 3 {
		t.Fatalf("the page has the commands %q, want three blocks", page)
	}
	c.streams = c.pings(t)
	machines.MoreReplies(t, c.streams, 10)
	o.does(t, page[0])
	all := []string{"n1", "n2", "n3"}
	c.members(t, all...)
	o.does(t, page[1])
	c.settled(t)

	c.budgets(t)
	c.members(t, all...)
	c.settled(t)

	for _, d := range databases {
		leader := c.leader(t, d.container, d.name)
		c.kubectl(t, "delete", "pod", leader, "--grace-period=0", "--force")
		c.newPod(t, "without-a-leader-of-"+d.container)
		c.members(t, all...) // without these servers, the next leader would take the majority with it
		c.settled(t)
	}

	c.loseDisk(t, "n3")
	c.members(t, all...)
	c.settled(t)
	c.newPod(t, "after-a-lost-disk")

	c.loseDisk(t, "n1", "n3")
	o.does(t, page[2])
	c.members(t, "n2")
	c.settled(t)
	for _, n := range all { // each ovn-controller knew the former cluster
		c.newPod(t, "after-two-lost-disks-"+n, "--overrides", `{"spec":{"nodeName":"`+n+`"}}`)
	}
	c.streams = nil
}

// loseDisk deletes the files of nodes' databases, and then their pods.
func (c *installed) loseDisk(t *testing.T, nodes ...string) {
	t.Helper()
	for _, name := range nodes {
		n, err := c.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		files := machines.Run(t, n, "sh", "-c", "cd /var/lib/northbound/ovn; ls -A | grep '_db.db$' && rm -rf *")
		if want := "ovnnb_db.db\novnsb_db.db"; strings.TrimSpace(files) != want {
			t.Fatalf("node %s has the files %q of databases, want %q", name, files, want)
		}
		c.kubectl(t, "delete", "pod", c.databasePod(t, name), "--grace-period=0", "--force")
	}
}

// databasePod is the name of the pod of databases on a node.
func (c *installed) databasePod(t *testing.T, node string) string {
	t.Helper()
	return c.kubectl(t, "get", "pods", "--selector", "app=ovn-db", "--field-selector", "spec.nodeName="+node,
		"--output", "jsonpath={.items[*].metadata.name}")
}

var serverLine = regexp.MustCompile(`\(([0-9a-f]{4}) at unix:raft/(?:nb|sb)/(\S+)\)`)

// members waits until both databases' clusters have a leader, and exactly the recorded server of each of these nodes.
func (c *installed) members(t *testing.T, nodes ...string) {
	t.Helper()
	for _, d := range databases {
		machines.Eventually(t, "servers of "+d.name, func(ctx context.Context) string {
			_, status, err := c.led(ctx, d.container, d.name)
			if err != nil {
				return err.Error()
			}
			var have, want []string
			for _, found := range serverLine.FindAllStringSubmatch(status, -1) {
				have = append(have, found[2]+" "+found[1])
			}
			for _, n := range nodes {
				id, err := c.Kubectl(ctx, "--namespace", sandbox.Namespace, "get", "configmap",
					"ovn-"+d.container+"-cluster", "--output", `jsonpath={.data.server\.`+n+`}`).Output()
				if err != nil || len(id) < 4 {
					return fmt.Sprintf("no server of node %s is recorded: %q, %v", n, id, err)
				}
				want = append(want, n+" "+string(id[:4]))
			}
			slices.Sort(have)
			if !slices.Equal(have, want) {
				return fmt.Sprintf("the cluster has the servers %v, want %v:\n%s", have, want, status)
			}
			return c.measured(ctx, d.container, len(nodes))
		})
	}
}

// measured tells whether the metrics of the nodes have one leader of a database, and this many servers.
func (c *installed) measured(ctx context.Context, database string, servers int) string {
	sum := map[string]float64{}
	for _, n := range c.Nodes {
		text, err := n.Get(ctx, "http://127.0.0.1:9411/metrics")
		if err != nil {
			continue // a node without databases
		}
		for line := range strings.Lines(text) {
			var value float64
			name, number, _ := strings.Cut(strings.TrimSpace(line), `{database="`+database+`"} `)
			if _, err := fmt.Sscan(number, &value); err == nil {
				sum[name] += value
			}
		}
	}
	up, leaders := sum["northbound_database_up"], sum["northbound_database_leader"]
	if up != float64(servers) || leaders != 1 {
		return fmt.Sprintf("metrics: %v servers of database %s are up, and %v lead; want %d and 1", up, database, leaders,
			servers)
	}
	return ""
}

// leader waits for a leader, and returns its pod.
func (c *installed) leader(t *testing.T, container, database string) (pod string) {
	t.Helper()
	machines.Eventually(t, "leader of "+database, func(ctx context.Context) string {
		var err error
		if pod, _, err = c.led(ctx, container, database); err != nil {
			return err.Error()
		}
		return ""
	})
	return pod
}

// led finds the pod whose server leads a database, and what that server says of the cluster.
func (c *installed) led(ctx context.Context, container, database string) (pod, status string, err error) {
	pods, err := c.Kubectl(ctx, "--namespace", sandbox.Namespace, "get", "pods", "--selector", "app=ovn-db", "--output",
		"jsonpath={.items[*].metadata.name}").Output()
	if err != nil {
		return "", "", err
	}
	for _, p := range strings.Fields(string(pods)) {
		out, _ := c.Kubectl(ctx, "--namespace", sandbox.Namespace, "exec", p, "--container", container, "--", "ovs-appctl",
			"-t", "/run/ovn/ovn"+container+"_db.ctl", "cluster/status", database).CombinedOutput()
		if strings.Contains(string(out), "\nRole: leader\n") {
			return p, string(out), nil
		}
		status += string(out)
	}
	return "", "", fmt.Errorf("none of the pods %s leads %s:\n%s", pods, database, status)
}
