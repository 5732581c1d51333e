package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// podLimit is how long the chart may take to replace an agent's pod.
const podLimit = 2 * time.Minute

// RestartAgent restarts a node's agent with additional flags, and waits until it is ready. It also starts one that
// StopAgent has stopped. Flags are pairs of a name and a value. On a cluster of the chart it replaces the agent's pod,
// with its ovn-controller.
func RestartAgent(t *testing.T, c *sandbox.Cluster, n *node.Node, flags ...string) {
	t.Helper()
	if c.RunsChart() {
		replaceAgent(t, c, n, nil, flags)
		return
	}
	services, err := n.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(services, func(s member.ServiceStatus) bool { return s.Name == node.Agent })
	if i < 0 {
		t.Fatalf("%s has no agent: %v", n.Spec.Name, services)
	}
	agent := services[i].Service
	for f := 0; f < len(flags); f += 2 {
		if at := slices.Index(agent.Argv, flags[f]); at >= 0 {
			agent.Argv = slices.Delete(agent.Argv, at, at+2)
		}
	}
	agent.Argv = append(agent.Argv, flags...)
	if err := n.StopService(t.Context(), node.Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.StartService(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the agent of "+n.Spec.Name+" is ready", func(ctx context.Context) string {
		if _, err := n.Get(ctx, "http://"+node.AgentMetrics+"/readyz"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// StopAgent ends a node's agent, and leaves its ovn-controller running. RestartAgent starts it again. On a cluster of
// the chart, another program takes the agent's place in its pod: the kubelet would start the agent again.
func StopAgent(t *testing.T, c *sandbox.Cluster, n *node.Node) {
	t.Helper()
	if c.RunsChart() {
		replaceAgent(t, c, n, []string{"sh", "-c", "exec sleep infinity"}, nil)
		return
	}
	if err := n.StopService(t.Context(), node.Agent, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// MakeGateway makes a node a gateway, or an ordinary node. On a cluster of the chart, which gives all agents the same
// flags, the Node gets a label, or loses it.
func MakeGateway(t *testing.T, c *sandbox.Cluster, n *node.Node, gateway bool) {
	t.Helper()
	key, value, _ := strings.Cut(node.GatewayLabel, "=")
	switch {
	case c.RunsChart() && gateway:
		Kubectl(t, c, "", "label", "node", n.Spec.Name, key+"="+value)
	case c.RunsChart():
		Kubectl(t, c, "", "label", "node", n.Spec.Name, key+"-")
	case gateway:
		RestartAgent(t, c, n, "--gateway-mode", "shared", "--gateway-interface", node.PhysicalBridge)
	default:
		RestartAgent(t, c, n, "--gateway-mode", "", "--gateway-interface", "")
	}
}

// OvnkubeOn runs ovnkube on a node with the agent's settings, and returns what it printed.
func OvnkubeOn(ctx context.Context, c *sandbox.Cluster, n *node.Node, args ...string) (string, error) {
	if c.RunsChart() {
		return InAgent(ctx, c, n, append([]string{"ovnkube"}, args...)...)
	}
	return n.Run(ctx, append([]string{"ovnkube"}, args...)...)
}

// InAgent runs a program in the container of a node's agent, on a cluster of the chart. It returns all that it printed.
func InAgent(ctx context.Context, c *sandbox.Cluster, n *node.Node, argv ...string) (string, error) {
	pod, err := agentPod(ctx, c, n)
	if err != nil {
		return "", err
	}
	out, err := c.Kubectl(ctx, append([]string{"--namespace", sandbox.Namespace, "exec", pod.Name, "--container", agent,
		"--"}, argv...)...).CombinedOutput()
	return string(out), err
}

// agent is the name of the agent's container in the chart.
const agent = "agent"

// replaceAgent gives the chart's DaemonSet other flags, or a command for the agent's container, and replaces the pod of
// one node. Pods of other nodes stay as they are: the DaemonSet then replaces none by itself. A command is no agent, so
// that its pod does not become ready.
func replaceAgent(t *testing.T, c *sandbox.Cluster, n *node.Node, command, flags []string) {
	t.Helper()
	const set = "daemonset/ovnkube-node"
	before, err := agentPod(t.Context(), c, n)
	if err != nil {
		t.Fatal(err)
	}
	args := before.Spec.Containers[containerIndex(before, agent)].Args
	for f := 0; f < len(flags); f += 2 {
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, flags[f]+"=") })
		args = append(args, flags[f]+"="+flags[f+1])
	}
	container, err := json.Marshal(map[string]any{"name": agent, "command": command, "args": args}) // null is none
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}, "template": {"spec": `+
		`{"containers": [%s]}}}}`, container)
	kubectl := func(args ...string) string {
		t.Helper()
		return Kubectl(t, c, "", append([]string{"--namespace", sandbox.Namespace}, args...)...)
	}
	kubectl("patch", set, "--patch", patch)
	Eventually(t, "the DaemonSet's controller sees the flags", func(context.Context) string {
		seen := kubectl("get", set, "--output", "jsonpath={.metadata.generation} {.status.observedGeneration}")
		if generation, observed, _ := strings.Cut(seen, " "); generation != observed {
			return "got " + seen
		}
		return ""
	})
	kubectl("delete", "pod", before.Name)
	Within(t, podLimit, "the new pod of the agent of "+n.Spec.Name, func(ctx context.Context) string {
		after, err := agentPod(ctx, c, n)
		if err != nil {
			return err.Error()
		}
		if have := after.Spec.Containers[containerIndex(after, agent)]; !slices.Equal(have.Args, args) ||
			!slices.Equal(have.Command, command) {
			return fmt.Sprintf("pod %s has the flags %v %v, want %v %v", after.Name, have.Command, have.Args, command, args)
		}
		if after.UID == before.UID || !replaced(after, command != nil) {
			return fmt.Sprintf("pod %s: %+v", after.Name, after.Status.ContainerStatuses)
		}
		return ""
	})
}

// replaced tells whether a pod is ready, or, without an agent, all of it but the agent.
func replaced(p corev1.Pod, without bool) bool {
	if !without {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}
	return len(p.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(p.Status.ContainerStatuses,
		func(s corev1.ContainerStatus) bool {
			return s.State.Running == nil || s.Name != agent && !s.Ready
		})
}

// agentPod is the chart's pod with a node's agent.
func agentPod(ctx context.Context, c *sandbox.Cluster, n *node.Node) (out corev1.Pod, err error) {
	text, err := c.Kubectl(ctx, "--namespace", sandbox.Namespace, "get", "pods", "--selector", "app=ovnkube-node",
		"--field-selector", "spec.nodeName="+n.Spec.Name, "--output", "json").Output()
	if err != nil {
		return out, err
	}
	var list corev1.PodList
	if err := json.Unmarshal(text, &list); err != nil {
		return out, err
	}
	if len(list.Items) != 1 {
		return out, fmt.Errorf("node %s has %d pods of an agent, want 1", n.Spec.Name, len(list.Items))
	}
	return list.Items[0], nil
}

// containerIndex finds a container of a pod.
func containerIndex(p corev1.Pod, name string) int {
	return slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
}
