package chart

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// backup makes two copies of the Northbound database, and keeps the second. It has a row that was deleted since, and is
// put back: then that row is there, a pod that came later has its network, and what was to be in the database is.
func (c *installed) backup(t *testing.T) {
	const directory, row = "/var/lib/northbound-backups", "somebody-elses-switch"
	nbctl := func(args ...string) {
		c.kubectl(t, append([]string{"exec", "daemonset/ovn-db", "--container", "nb", "--", "ovn-nbctl"}, args...)...)
	}
	o, page := c.operator(t), blocks(t, "## Back up")
	if len(page) != 3 {
		t.Fatalf("the page has the commands %q, want three blocks", page)
	}
	nbctl("ls-add", row)
	o.does(t, page[0])
	o.does(t, page[1])
	n, err := c.Node(c.kubectl(t, "get", "pods", "--selector", "app=ovn-backup", "--output",
		"jsonpath={.items[0].spec.nodeName}"))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(machines.Run(t, n, "ls", "-A", directory))
	c.kubectl(t, "delete", "job", "ovn-backup-now")
	o.does(t, strings.Replace(page[0], "backup.enabled=true", "backup.keep=1", 1))
	o.does(t, page[1])
	second := strings.TrimSpace(machines.Run(t, n, "ls", "-A", directory))
	if len(strings.Fields(first)) != 1 || len(strings.Fields(second)) != 1 || first >= second {
		t.Fatalf("the first job left %q, the second %q: want a file each, and the later one", first, second)
	}
	nbctl("ls-del", row)
	copied := machines.Run(t, n, "cat", directory+"/"+second) + "\n"
	if !c.copied(t, copied, row) {
		t.Errorf("the copy lacks the logical switch %s", row)
	}
	c.putBack(t, o, page[2], copied)
	nbctl("get", "Logical_Switch", row, "_uuid")
	nbctl("ls-del", row)
	machines.Run(t, n, "rm", "-r", directory) // what is left of the node is compared later
	c.settled(t)
}

// putBack puts a copy in the place of the database, with the command of the page. A pod that came after the copy keeps
// its network.
func (c *installed) putBack(t *testing.T, o *operator, command, copied string) {
	t.Helper()
	const later = "after-copy"
	machines.Kubectl(t, c.Cluster, "", "run", later, "--image=localhost/echo:1", "--restart=Never")
	machines.Kubectl(t, c.Cluster, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/"+later)
	if err := os.WriteFile(filepath.Join(o.dir, "FILE"), []byte(copied), 0o600); err != nil {
		t.Fatal(err)
	}
	streams := c.pingsEvery(t, "0.01")
	machines.MoreReplies(t, streams, 100)
	o.does(t, command)
	machines.MoreReplies(t, streams, 500)
	machines.InSync(t, c.Cluster)
	for _, s := range streams {
		t.Logf("while a copy was put back: %s", s)
	}
	machines.MoreReplies(t, c.streams, 1)
	for _, s := range c.streams {
		s.Reset() // they may lose packets here, as the page says
	}
	for _, ip := range machines.PodIPs(t, c.Cluster, later) {
		to := netip.AddrPortFrom(ip, 8080)
		machines.Eventually(t, "a pod asks the one that came after the copy", func(ctx context.Context) string {
			if got := machines.AskIn(ctx, c.Cluster, c.pods[0], "tcp", to); !strings.HasPrefix(got, later+" ") {
				return "got " + got
			}
			return ""
		})
	}
	machines.Kubectl(t, c.Cluster, "", "delete", "pod", later, "--grace-period=1", "--timeout=60s")
}

// copied tells whether a copy of the Northbound database has a logical switch, as the page's query sees it.
func (c *installed) copied(t *testing.T, copied, row string) bool {
	t.Helper()
	const query = `["OVN_Northbound",{"op":"select","table":"Logical_Switch","where":[],"columns":["name"]}]`
	cmd := c.Kubectl(t.Context(), "--namespace", sandbox.Namespace, "exec", "--stdin", "daemonset/ovn-db", "--container",
		"nb", "--", "bash", "-euc", `cat > /tmp/copy.db; ovsdb-tool query /tmp/copy.db "$0"; rm /tmp/copy.db`, query)
	cmd.Stdin = strings.NewReader(copied)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var answers []struct{ Rows []struct{ Name string } }
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	for _, r := range answers[0].Rows {
		if r.Name == row {
			return true
		}
	}
	return false
}
