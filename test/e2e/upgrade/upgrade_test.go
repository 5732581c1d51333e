package upgrade

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// TestUpgrade upgrades from the version in bin/earlier to that in bin, and back: first the control plane, then agent by
// agent. Pings, connections and new pods go on all the time. After each step the database holds what the running
// version wants, and every pod that is made gets its network. It prints what each step cost.
func TestUpgrade(t *testing.T) {
	earlier, err := filepath.Abs("../../../bin/earlier")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrade{Cluster: machines.Up(t, sandbox.Options{Name: "upgrade", DualStack: true,
		Install: sandbox.InstallChart, BinDir: earlier})}
	from := u.version(t, "master")
	u.makePods(t)
	image, err := u.LoadImage(t.Context(), filepath.Dir(earlier))
	if err != nil {
		t.Fatal(err)
	}
	to := image[strings.LastIndex(image, ":")+1:]
	t.Logf("from %s to %s", from, to)
	if from == to {
		t.Fatalf("both versions are %s: make bin/earlier with test/earlier.sh", to)
	}
	u.begin(t)
	u.step(t, "upgrade of the control plane", func() {
		u.helm(t, "upgrade", sandbox.ReleaseName, filepath.Join(filepath.Dir(earlier), "chart"),
			"--reset-then-reuse-values", "--set", "image.tag="+to, "--set", "node.updateStrategy=OnDelete",
			"--set", "openvswitch.inPods=false")
	})
	u.runs(t, "master", to)
	u.runs(t, "node", from)
	u.work(t)
	for _, n := range u.Nodes {
		u.step(t, "upgrade of node "+n.Spec.Name, func() {
			u.replaceAgent(t, n.Spec.Name)
		})
	}
	u.runs(t, "node", to)
	u.work(t)
	u.step(t, "rollback of everything", func() { u.helm(t, "rollback", sandbox.ReleaseName, "1") })
	u.runs(t, "master", from)
	u.runs(t, "node", from)
	u.work(t)
	u.end(t)
}

// upgrade is a cluster whose version changes.
type upgrade struct {
	*sandbox.Cluster
	streams []*machines.Stream
	churn   *churn
}

// makePods makes a pod on each node, and a Service of each.
func (u *upgrade) makePods(t *testing.T) {
	var manifest strings.Builder
	for _, n := range u.Nodes {
		fmt.Fprintf(&manifest, `---
apiVersion: v1
kind: Pod
metadata:
  name: p-%[1]s
  labels: {app: "%[1]s"}
  annotations: {kubectl.kubernetes.io/default-container: echo}
spec:
  nodeName: %[1]s
  terminationGracePeriodSeconds: 0
  containers:
  - {name: echo, image: "localhost/echo:1"}
  - {name: lines, image: "localhost/echo:1", command: [nc, -ll, -p, "9000", -e, cat]}
---
apiVersion: v1
kind: Service
metadata: {name: s-%[1]s}
spec:
  selector: {app: "%[1]s"}
  ipFamilyPolicy: RequireDualStack
  ports: [{name: echo, port: 80, targetPort: 8080}, {name: lines, port: 9000}]
`, n.Spec.Name)
	}
	machines.Kubectl(t, u.Cluster, manifest.String(), "apply", "--filename", "-")
	machines.Kubectl(t, u.Cluster, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod", "--all")
}

// begin starts what must not be disturbed: in each family, 100 pings a second and a TCP connection to a Service, which
// carries a line ten times a second. On a third node, a pod is made and deleted again and again.
func (u *upgrade) begin(t *testing.T) {
	first, last := u.Nodes[0].Spec.Name, u.Nodes[len(u.Nodes)-1].Spec.Name
	in := func(what string, argv ...string) {
		u.streams = append(u.streams, machines.StartStream(t, what, func(ctx context.Context) *exec.Cmd {
			return u.Kubectl(ctx, append([]string{"exec", "p-" + first, "--"}, argv...)...)
		}))
	}
	for _, ip := range machines.PodIPs(t, u.Cluster, "p-"+last) {
		in("ping to "+ip.String(), "ping", "-i", "0.01", ip.String())
	}
	for _, ip := range machines.Addresses(t, u.Cluster, "service", "s-"+last, "{.spec.clusterIPs[*]}") {
		in("connection to "+ip.String(), "sh", "-c", fmt.Sprintf(
			"n=0; while echo seq=$n; do n=$(((n+1)%%65536)); sleep 0.1; done | nc %s 9000", ip))
	}
	u.churn = startChurn(u.Cluster, u.Nodes[1].Spec.Name)
	t.Cleanup(u.churn.stop)
	machines.MoreReplies(t, u.streams, 20)
}

// step changes something, and waits until all is as it should be. It prints how many packets were lost: none may be.
func (u *upgrade) step(t *testing.T, what string, change func()) {
	t.Helper()
	change()
	if err := u.Rollout(t.Context()); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, u.Cluster)
	machines.MoreReplies(t, u.streams, 20)
	for _, s := range u.streams {
		t.Logf("%s: %s", what, s)
	}
	machines.NoGaps(t, u.streams)
}

// replaceAgent deletes the agent's pod on a node, and waits for another one.
func (u *upgrade) replaceAgent(t *testing.T, node string) {
	t.Helper()
	pods := func() string {
		return u.kubectl(t, "get", "pods", "--selector", "app=ovnkube-node", "--field-selector", "spec.nodeName="+node,
			"--output", "name")
	}
	former := pods()
	u.kubectl(t, "delete", strings.TrimSpace(former))
	machines.Eventually(t, "another agent on node "+node, func(context.Context) string {
		if now := pods(); now == "" || now == former {
			return fmt.Sprintf("the pods are %q", now)
		}
		return ""
	})
	u.kubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", strings.TrimSpace(pods()))
}

// end waits until a pod was made with the last version.
func (u *upgrade) end(t *testing.T) {
	u.churn.more(t)
	u.churn.stop()
	t.Logf("%d pods were made and deleted meanwhile", u.churn.made.Load())
	if err := u.churn.err; err != nil {
		t.Error(err)
	}
}

// work makes a pod on each node, which is reached through a new Service, and removes both. With the userspace datapath,
// pods of the same node may lose a few packets while a pod comes or goes: that is no part of the upgrade.
func (u *upgrade) work(t *testing.T) {
	t.Helper()
	for _, n := range u.Nodes {
		name := "new-" + n.Spec.Name
		machines.Kubectl(t, u.Cluster, "", "run", name, "--image=localhost/echo:1", "--restart=Never", "--expose",
			"--port=8080", "--overrides", `{"spec":{"nodeName":"`+n.Spec.Name+`"}}`)
		machines.Kubectl(t, u.Cluster, "", "wait", "--for=condition=Ready", "--timeout=60s", "pod/"+name)
		ip := machines.Addresses(t, u.Cluster, "service", name, "{.spec.clusterIPs[*]}")[0]
		machines.Eventually(t, "service "+name, func(ctx context.Context) string {
			who := machines.AskIn(ctx, u.Cluster, "p-"+u.Nodes[0].Spec.Name, "tcp", netip.AddrPortFrom(ip, 8080))
			if answered, _, _ := strings.Cut(who, " "); answered != name {
				return "got " + who
			}
			return ""
		})
		machines.Kubectl(t, u.Cluster, "", "delete", "--now", "pod/"+name, "service/"+name)
	}
	u.churn.more(t)
	machines.InSync(t, u.Cluster)
	machines.MoreReplies(t, u.streams, 20)
	for _, s := range u.streams {
		t.Logf("pods and services come and go: %s", s.Reset())
	}
}

// runs checks which version the masters or the nodes' agents have.
func (u *upgrade) runs(t *testing.T, what, want string) {
	t.Helper()
	if have := u.version(t, what); have != want {
		t.Fatalf("pods ovnkube-%s have the versions %s, want %s", what, have, want)
	}
}

// version asks each pod of masters or of the nodes' agents. It returns the version that all have, or all of them.
func (u *upgrade) version(t *testing.T, what string) string {
	t.Helper()
	seen := map[string]bool{}
	var all []string
	container := map[string]string{"master": "master", "node": "agent"}[what]
	pods := u.kubectl(t, "get", "pods", "--selector", "app=ovnkube-"+what, "--output", "name")
	for _, pod := range strings.Fields(pods) {
		out := u.kubectl(t, "exec", pod, "--container", container, "--", "ovnkube", "version")
		if tag := strings.Fields(out)[1]; !seen[tag] {
			seen[tag] = true
			all = append(all, tag)
		}
	}
	return strings.Join(all, ",")
}

// kubectl runs kubectl in the chart's namespace.
func (u *upgrade) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return machines.Kubectl(t, u.Cluster, "", append([]string{"--namespace", sandbox.Namespace}, args...)...)
}

func (u *upgrade) helm(t *testing.T, args ...string) {
	t.Helper()
	if _, err := u.Helm(t.Context(), append(args, "--namespace", sandbox.Namespace)...); err != nil {
		t.Fatal(err)
	}
}
