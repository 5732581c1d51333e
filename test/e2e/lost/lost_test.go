package lost

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/scale/load"
)

// pods are on different nodes.
const pods = `
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: echo}}
spec: {nodeName: n1, terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "localhost/echo:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {app: echo}}
spec: {nodeName: n2, terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "localhost/echo:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec: {selector: {app: echo}, ipFamilyPolicy: RequireDualStack, ports: [{port: 80, targetPort: 8080}]}
`

// TestBothDatabasesLost deletes the files of both databases, and starts them again as docs/operate/faults.md says. The
// master makes the same rows again, with the same UUIDs, and running pods keep their addresses. They lose no packet
// before nodes can reach the new Southbound database. It prints how many of 100 pings a second were lost in all, and
// how long it took. LOST_PODS is how many further pods there are, on Nodes without a machine.
func TestBothDatabasesLost(t *testing.T) {
	c := machines.Up(t, sandbox.Options{Name: "lost-test", Nodes: 2, DualStack: true})
	machines.Kubectl(t, c, pods, "apply", "--filename", "-")
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	crowd(t, c)
	addresses := append(machines.PodIPs(t, c, "a"), machines.PodIPs(t, c, "b")...)
	before := rows(t, c)
	if strings.Count(before, "default_") != 2 || !strings.Contains(before, "Service_default/echo_TCP") {
		t.Fatalf("the database lacks ports of the pods, or the service's load balancer:\n%s", before)
	}
	var streams []*machines.Stream
	for _, ip := range machines.PodIPs(t, c, "b") {
		streams = append(streams, machines.StartStream(t, "ping from a to "+ip.String(),
			func(ctx context.Context) *exec.Cmd {
				return c.Kubectl(ctx, "exec", "a", "--", "ping", "-i", "0.01", ip.String())
			}))
	}
	machines.MoreReplies(t, streams, 50)
	began := time.Now()
	err := c.Control.LoseDatabases(t.Context(), func(context.Context) error {
		machines.Within(t, 5*time.Minute, "the same rows", func(context.Context) string {
			if now := rows(t, c); now != before {
				return fmt.Sprintf("%.1000s\nwant:\n%.1000s", now, before)
			}
			return ""
		})
		t.Logf("the Northbound database is filled after %.1f s", time.Since(began).Seconds())
		machines.MoreReplies(t, streams, 100)
		machines.NoGaps(t, streams)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nodes may reach the Southbound database after %.1f s", time.Since(began).Seconds())
	followed(t, c)
	t.Logf("nodes have taken it over after %.1f s", time.Since(began).Seconds())
	machines.MoreReplies(t, streams, 500)
	for _, s := range streams {
		t.Log(s)
	}
	if now := append(machines.PodIPs(t, c, "a"), machines.PodIPs(t, c, "b")...); !slices.Equal(now, addresses) {
		t.Errorf("the pods' addresses were %v, are %v", addresses, now)
	}
	machines.Kubectl(t, c, "", "run", "later", "--image=localhost/echo:1", "--restart=Never")
	machines.Kubectl(t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/later")
	ips := machines.Addresses(t, c, "service", "echo", "{.spec.clusterIPs[*]}")
	if len(ips) != 2 {
		t.Fatalf("Service echo has %v, want an address of each family", ips)
	}
	for _, ip := range ips {
		machines.Eventually(t, fmt.Sprintf("the later pod asks %s", ip), func(ctx context.Context) string {
			who := machines.AskIn(ctx, c, "later", "tcp", netip.AddrPortFrom(ip, 80))
			if name, _, _ := strings.Cut(who, " "); name != "a" && name != "b" {
				return "got " + who
			}
			return ""
		})
	}
}

// crowd makes as many further pods as LOST_PODS says, a hundred on a Node, and waits until all have ports.
func crowd(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	const namespace = "crowd"
	number := os.Getenv("LOST_PODS")
	if number == "" {
		return
	}
	pods, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("LOST_PODS=%s: want a number of pods", number)
	}
	nodes := (pods + 99) / 100
	client, err := c.Control.Client()
	if err == nil {
		err = errors.Join(load.Nodes(t.Context(), client, nodes), load.Namespace(t.Context(), client, namespace))
	}
	if err == nil {
		_, err = load.CreatePods(t.Context(), client, namespace, pods, nodes)
	}
	if err != nil {
		t.Fatal(err)
	}
	machines.Within(t, 5*time.Minute, "all pods have ports", func(context.Context) string {
		if have := strings.Count(rows(t, c), namespace+"_"); have != pods {
			return fmt.Sprintf("%d have, want %d", have, pods)
		}
		return ""
	})
	followed(t, c)
}

// followed waits until the nodes have what the Northbound database has.
func followed(t *testing.T, c *sandbox.Cluster) {
	t.Helper()
	if _, err := c.NBCtl(t.Context(), "--timeout=300", "--wait=hv", "sync"); err != nil {
		t.Fatal(err)
	}
}

// rows are the UUIDs and names of what the Northbound database has.
func rows(t *testing.T, c *sandbox.Cluster) string {
	t.Helper()
	var out []string
	for _, table := range []string{"logical_switch", "logical_switch_port", "logical_router", "load_balancer"} {
		text, err := c.NBCtl(t.Context(), "--no-headings", "--format=csv", "--columns=_uuid,name", "list", table)
		if err != nil {
			return err.Error()
		}
		out = append(out, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
