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

// RestartAgent restarts a node's agent with additional flags, and waits until it is ready. Flags are pairs of a name
// and a value. On a cluster of the chart it replaces the agent's pod, with its ovn-controller.
func RestartAgent(t *testing.T, c *sandbox.Cluster, n *node.Node, flags ...string) {
	t.Helper()
	if c.RunsChart() {
		replaceAgent(t, c, n, flags)
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

// replaceAgent gives the chart's DaemonSet other flags, and replaces the pod of one node. Pods of other nodes stay as
// they are: the DaemonSet then replaces none by itself.
func replaceAgent(t *testing.T, c *sandbox.Cluster, n *node.Node, flags []string) {
	t.Helper()
	const set, agent = "daemonset/ovnkube-node", "agent"
	before, err := agentPod(t.Context(), c, n)
	if err != nil {
		t.Fatal(err)
	}
	args := before.Spec.Containers[containerIndex(before, agent)].Args
	for f := 0; f < len(flags); f += 2 {
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, flags[f]+"=") })
		args = append(args, flags[f]+"="+flags[f+1])
	}
	list, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}, "template": {"spec": `+
		`{"containers": [{"name": %q, "args": %s}]}}}}`, agent, list)
	kubectl := func(args ...string) string {
		t.Helper()
		return Kubectl(t, c, "", append([]string{"--namespace", sandbox.Namespace}, args...)...)
	}
	kubectl("patch", set, "--patch", patch)
	Eventually(t, "the DaemonSet's controller sees the flags", func(context.Context) string {
		seen := kubectl("get", set, "--output", "jsonpath={.metadata.generation} {.status.observedGeneration}")
		if generation, observed, _ := strings.Cut(seen, " "); generation != observed {
			return seen
		}
		return ""
	})
	kubectl("delete", "pod", before.Name)
	Within(t, podLimit, "the agent of "+n.Spec.Name+" is ready", func(ctx context.Context) string {
		after, err := agentPod(ctx, c, n)
		if err != nil {
			return err.Error()
		}
		if have := after.Spec.Containers[containerIndex(after, agent)].Args; !slices.Equal(have, args) {
			return fmt.Sprintf("pod %s has the flags %v, want %v", after.Name, have, args)
		}
		if after.UID == before.UID || !slices.ContainsFunc(after.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Sprintf("pod %s: %+v", after.Name, after.Status.ContainerStatuses)
		}
		return ""
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
