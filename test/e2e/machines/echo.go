package machines

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
)

// EchoNodePort is the node port of EchoPods' Service.
const EchoNodePort = 30111

// EchoPods makes a pod on each node, and the Service echo of them with these ClusterIPs, one of each family. It returns
// the pods' names.
func EchoPods(t *testing.T, c *sandbox.Cluster, clusterIPs ...string) (pods []string) {
	t.Helper()
	var manifest strings.Builder
	for i, n := range c.Nodes {
		pods = append(pods, fmt.Sprintf("p%d", i+1))
		fmt.Fprintf(&manifest, `---
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: echo}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1"}]
`, pods[i], n.Spec.Name)
	}
	families := "SingleStack"
	if len(clusterIPs) > 1 {
		families = "RequireDualStack"
	}
	fmt.Fprintf(&manifest, `---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  type: NodePort
  selector: {app: echo}
  ipFamilyPolicy: %s
  clusterIP: %q
  clusterIPs: ["%s"]
  ports: [{port: 80, targetPort: 8080, nodePort: %d}]
`, families, clusterIPs[0], strings.Join(clusterIPs, `", "`), EchoNodePort)
	Kubectl(t, c, manifest.String(), "apply", "--filename", "-")
	Kubectl(t, c, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod", "--all")
	return pods
}

// EchoAnswers asks EchoPods' Service from each pod and node, each node's port from another node, and connects to the
// API server's ClusterIP from each pod.
func EchoAnswers(t *testing.T, c *sandbox.Cluster, pods []string) {
	t.Helper()
	for _, ip := range Addresses(t, c, "service", "echo", "{.spec.clusterIPs[*]}") {
		to := netip.AddrPortFrom(ip, 80)
		for _, pod := range pods {
			answered(t, pods, pod, to, func(ctx context.Context) string { return AskIn(ctx, c, pod, "tcp", to) })
		}
		for _, n := range c.Nodes {
			answered(t, pods, n.Spec.Name, to, func(ctx context.Context) string { return AskOn(ctx, n.Member, "tcp", to) })
		}
	}
	for i, n := range c.Nodes {
		from := c.Nodes[(i+1)%len(c.Nodes)]
		for _, a := range n.Config.Addrs {
			to := netip.AddrPortFrom(a.Addr(), EchoNodePort)
			answered(t, pods, from.Spec.Name, to, func(ctx context.Context) string {
				return AskOn(ctx, from.Member, "tcp", to)
			})
		}
	}
	for _, pod := range pods {
		Kubectl(t, c, "", "exec", pod, "--", "sh", "-c",
			"nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null")
	}
}

// answered waits until one of the pods answers.
func answered(t *testing.T, pods []string, from string, to netip.AddrPort, ask func(context.Context) string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s asks %s", from, to), func(ctx context.Context) string {
		who := ask(ctx)
		if name, _, _ := strings.Cut(who, " "); !slices.Contains(pods, name) {
			return fmt.Sprintf("the answer is %q, want that of one of %v", who, pods)
		}
		return ""
	})
}
