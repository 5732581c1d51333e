package healthcheck

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// The servers of the backends die while the file /dead exists, and come back afterwards. Their pods stay ready.
const workload = `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {k8s.ovn.org/service-health-check: '{"interval":1,"timeout":1,"successes":1,"failures":2}'}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{name: t, port: 80, targetPort: 8080}, {name: u, protocol: UDP, port: 80, targetPort: 8080}]
---
` + podHead + `
metadata: {name: web-n1, labels: {app: web}}
spec: {nodeName: n1, ` + podBody + `
---
` + podHead + `
metadata: {name: web-n2, labels: {app: web}}
spec: {nodeName: n2, ` + podBody + `
---
` + podHead + `
metadata: {name: client-n1}
spec: {nodeName: n1, ` + podBody + `
`

// The backends may connect to nobody, so that only a rule of the network's own lets them answer a check.
const isolated = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress: [{ports: [{port: 8080}, {port: 8080, protocol: UDP}]}]
`

const (
	podHead = "apiVersion: v1\nkind: Pod"
	podBody = `terminationGracePeriodSeconds: 0, containers: [{name: echo, image: "localhost/echo:1", ` +
		`imagePullPolicy: IfNotPresent, ` +
		`command: [/bin/sh, -c, "while :; do /bin/echo-server serve 8080 & echo $! >/server; wait; while [ -e /dead ]; ` +
		`do /bin/busybox sleep 0.1; done; done"]}]}`
)

// bed is a cluster with the workload.
type bed struct {
	*sandbox.Cluster
	vips []netip.AddrPort
}

// ask asks 12 times from a pod and from a node over a protocol. It returns the sorted set of answers: "name", "refused"
// and so on.
func (b bed) ask(ctx context.Context, protocol string, to netip.AddrPort) []string {
	args := []string{"ask", protocol, to.String(), "12", "1s"}
	pod, _ := machines.InPod(b.Cluster, "default", "client-n1").Run(ctx, "", args...)
	node, _ := machines.On(b.Nodes[0].Member).Run(ctx, "", args...)
	var out []string
	for line := range strings.Lines(pod + "\n" + node) {
		switch name, _, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case strings.Contains(line, "connection refused"):
			out = append(out, "refused")
		case name == "error:":
			out = append(out, strings.TrimSpace(line))
		case strings.HasPrefix(name, "web-"):
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// answered waits until exactly these backends answer, at every address and over both protocols.
func (b bed) answered(t *testing.T, who ...string) {
	t.Helper()
	for _, protocol := range []string{"tcp", "udp"} {
		for _, to := range b.vips {
			machines.Eventually(t, fmt.Sprintf("%s over %s", to, protocol), func(ctx context.Context) string {
				if got := b.ask(ctx, protocol, to); !slices.Equal(got, who) {
					return fmt.Sprintf("%q answer, want %q", got, who)
				}
				return ""
			})
		}
	}
}

func (b bed) die(t *testing.T, pod string) {
	t.Helper()
	machines.Kubectl(t, b.Cluster, "", "exec", pod, "--", "/bin/sh", "-c",
		"echo >/dead; read server </server; kill -9 $server")
}

func (b bed) ready(t *testing.T) {
	t.Helper()
	if got := machines.Kubectl(t, b.Cluster, "", "get", "pods", "-l", "app=web", "-o",
		`jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status} `+
			`{.items[*].status.containerStatuses[*].restartCount}`); got != "True True 0 0" {
		t.Errorf("the backends' pods are %s, want them ready and never restarted", got)
	}
}

func TestHealthCheck(t *testing.T) {
	b := bed{Cluster: machines.Up(t, sandbox.Options{Name: "healthcheck", Nodes: 2, DualStack: true})}
	machines.Kubectl(t, b.Cluster, workload, "apply", "-f", "-")
	machines.Kubectl(t, b.Cluster, "", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	for _, ip := range strings.Fields(machines.Kubectl(t, b.Cluster, "", "get", "service", "web", "-o",
		"jsonpath={.spec.clusterIPs[*]}")) {
		b.vips = append(b.vips, netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
	}
	b.answered(t, "web-n1", "web-n2")
	b.monitors(t, "online", 8)

	// From here on every check that succeeds has been answered by an isolated pod.
	machines.Kubectl(t, b.Cluster, isolated, "apply", "-f", "-")
	machines.Eventually(t, "the policy's ACLs", func(ctx context.Context) string {
		out, err := b.NBCtl(ctx, "--bare", "--columns=match", "find", "acl",
			`external_ids:"k8s.ovn.org/owner-name"="default/web"`)
		if err != nil || !strings.Contains(out, "udp.dst == 8080") {
			return fmt.Sprint(out, err)
		}
		return ""
	})
	b.die(t, "web-n1")
	b.answered(t, "web-n2")
	b.monitors(t, "offline", 4)
	b.ready(t)

	b.die(t, "web-n2")
	b.answered(t, "refused")
	b.ready(t)

	machines.Kubectl(t, b.Cluster, "", "exec", "web-n1", "--", "/bin/busybox", "rm", "/dead")
	b.answered(t, "web-n1")

	// Without the annotation, every ready backend serves, dead or not.
	machines.Kubectl(t, b.Cluster, "", "annotate", "service", "web", "k8s.ovn.org/service-health-check-")
	b.monitors(t, "", 0)
	machines.Kubectl(t, b.Cluster, "", "exec", "web-n2", "--", "/bin/busybox", "rm", "/dead")
	b.answered(t, "web-n1", "web-n2")

	// A malformed annotation is reported.
	machines.Kubectl(t, b.Cluster, "", "annotate", "service", "web", "k8s.ovn.org/service-health-check=often")
	machines.Eventually(t, "the event", func(context.Context) string {
		if got := machines.Kubectl(t, b.Cluster, "", "get", "events", "--field-selector=reason=InvalidServiceHealthCheck",
			"-o", "jsonpath={.items[*].message}"); !strings.Contains(got, `"often": not JSON, want such as {"interval":5`) {
			return "got " + got
		}
		return ""
	})
}

// monitors waits until the given number of endpoints, out of 8 or 0, have a state in the Southbound database.
func (b bed) monitors(t *testing.T, status string, n int) {
	t.Helper()
	machines.Eventually(t, fmt.Sprintf("%d monitors %s", n, status), func(ctx context.Context) string {
		out, err := b.SBCtl(ctx, "--bare", "--columns=status", "list", "Service_Monitor")
		if err != nil {
			return err.Error()
		}
		all := strings.Fields(out)
		has := len(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s != status }))
		if has != n || n > 0 && len(all) != 8 {
			return "got " + out
		}
		return ""
	})
}
