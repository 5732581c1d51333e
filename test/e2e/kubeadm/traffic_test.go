package kubeadm

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// pods are the names of the DaemonSet's pods, in the order of the nodes.
func (m *migration) pods(t *testing.T) (names []string) {
	t.Helper()
	for _, n := range m.Nodes {
		names = append(names, machines.Kubectl(t, m.Cluster, "", "get", "pods", "--selector", "app=steady",
			"--field-selector", "spec.nodeName="+n.Spec.Name, "--output", "jsonpath={.items[0].metadata.name}"))
	}
	return names
}

// counting runs a command ten times a second, and prints the number of each time that it succeeded.
func counting(command string) string {
	return "i=0; while :; do " + command + " echo seq=$i; i=$((i+1)); sleep 0.1; done"
}

// between starts a ping and a connection, in this order, between the pods of two nodes. They end when one of the pods
// is made anew.
func (m *migration) between(t *testing.T, from, to int) []*machines.Stream {
	t.Helper()
	pods := m.pods(t)
	ip := machines.Addresses(t, m.Cluster, "pod", pods[to], "{.status.podIP}")[0].String()
	var streams []*machines.Stream
	for _, s := range []struct{ what, command string }{
		{"ping", "ping -i 0.1 " + ip}, {"connection", "(" + counting("") + ") | nc " + ip + " 9000"},
	} {
		what := fmt.Sprintf("%s from a pod of %s to one of %s", s.what, m.Nodes[from].Spec.Name, m.Nodes[to].Spec.Name)
		streams = append(streams, machines.StartStream(t, what, func(ctx context.Context) *exec.Cmd {
			return m.Kubectl(ctx, "exec", pods[from], "--", "sh", "-c", s.command)
		}))
	}
	return streams
}

// requests starts requests to a Service whose pods move: from a pod of n3 by the Service's name, until that pod is made
// anew, and from the machine n3 by its address.
func (m *migration) requests(t *testing.T) []*machines.Stream {
	t.Helper()
	pod, machine := m.pods(t)[2], m.Nodes[2]
	ip := machines.Addresses(t, m.Cluster, "service", "web", "{.spec.clusterIP}")[0].String()
	return []*machines.Stream{
		machines.StartStream(t, "http://web/ from a pod of n3", func(ctx context.Context) *exec.Cmd {
			return m.Kubectl(ctx, "exec", pod, "--", "sh", "-c", counting("wget -q -T 2 -O /dev/null http://web/ &&"))
		}),
		machines.StartStream(t, "http://"+ip+"/ from n3", func(ctx context.Context) *exec.Cmd {
			return machine.Command(ctx, "bash", "-c", counting(machines.Echo+" ask tcp "+ip+":80 1 2s >/dev/null &&"))
		}),
	}
}

// steady checks that streams go on, and that they have lost nothing.
func (m *migration) steady(t *testing.T, during string, streams []*machines.Stream) {
	t.Helper()
	nearlySteady(t, during, streams, 0)
}

// nearlySteady is steady for streams that may lose so many packets, each alone.
func nearlySteady(t *testing.T, during string, streams []*machines.Stream, most int) {
	t.Helper()
	machines.MoreReplies(t, streams, 5)
	for _, s := range streams {
		t.Logf("during %s, %s", during, s)
	}
	machines.SingleGaps(t, streams, most)
}

// reach checks that each pod and each node reaches each pod, and the Services at their ClusterIPs and at each node's
// port. Pods also ask by name, and nodes also the hostPorts of the other nodes' pods.
func (m *migration) reach(t *testing.T, when string) {
	t.Helper()
	pods := m.pods(t)
	var to []string
	for _, pod := range pods {
		to = append(to, machines.Addresses(t, m.Cluster, "pod", pod, "{.status.podIP}")[0].String()+":8080")
	}
	for _, service := range []string{"steady", "web"} {
		to = append(to, machines.Addresses(t, m.Cluster, "service", service, "{.spec.clusterIP}")[0].String()+":80")
	}
	for _, n := range m.Nodes {
		to = append(to, fmt.Sprintf("%s:%d", n.Config.Addrs[0].Addr(), machines.EchoNodePort))
	}
	for _, pod := range pods {
		answers(t, pod+" asks, "+when, to, func(ctx context.Context) *exec.Cmd {
			return m.Kubectl(ctx, "exec", "--stdin", pod, "--container", "echo", "--", machines.EchoInPod, "questions", "5s")
		})
		machines.Eventually(t, pod+" asks http://web/, "+when, func(ctx context.Context) string {
			out, err := m.Kubectl(ctx, "exec", pod, "--", "wget", "-q", "-T", "3", "-O", "-", "http://web/").CombinedOutput()
			if err != nil {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
	}
	for i, n := range m.Nodes {
		// The hostPorts of the others' pods.
		to := slices.Clone(to)
		for j, other := range m.Nodes {
			if i != j {
				to = append(to, fmt.Sprintf("%s:8090", other.Config.Addrs[0].Addr()))
			}
		}
		answers(t, n.Spec.Name+" asks, "+when, to, func(ctx context.Context) *exec.Cmd {
			return n.Command(ctx, machines.Echo, "questions", "5s")
		})
	}
}

// answers waits until all questions have an answer. Each is asked so often that each backend of a Service is tried.
func answers(t *testing.T, what string, to []string, command func(context.Context) *exec.Cmd) {
	t.Helper()
	const times = 6
	questions := strings.Repeat("tcp "+strings.Join(to, "\ntcp ")+"\n", times)
	machines.Eventually(t, what, func(ctx context.Context) string {
		cmd := command(ctx)
		cmd.Stdin = strings.NewReader(questions)
		out, err := cmd.Output()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(lines) != times*len(to) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		for i, line := range lines {
			if strings.HasPrefix(line, "error: ") {
				return to[i%len(to)] + ": " + line
			}
		}
		return ""
	})
}
