package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// Component is a part of the installation on one node.
type Component struct {
	Name string `json:"component"` // what runs: master, databases, openvswitch, node, signer
	Node string `json:"node"`      // "": nowhere
	// Role is what it does now, such as "leader", or "tunnels to 2".
	Role string `json:"role,omitempty"`
	// Bytes is the size of each database's file: of "nb" and "sb". nil: unknown, or there is none.
	Bytes map[string]int64 `json:"bytes,omitempty"`
	Ready bool             `json:"ready"`
	// Problem is why it is not ready; Try is the command that tells more.
	Problem string `json:"problem,omitempty"`
	Try     string `json:"try,omitempty"`
}

// parts are the labels "app" of the chart's pods with what the pods are to a reader, in the order of a Status.
func parts() [][2]string {
	return [][2]string{{"ovnkube-signer", "signer"}, {diagnostics.Database.App(), "databases"},
		{diagnostics.Master.App(), "master"}, {openvswitchApp, "openvswitch"}, {diagnostics.Node.App(), "node"}}
}

// openvswitchApp is the label "app" of the pods with Open vSwitch. Nodes may have their own instead.
const openvswitchApp = "ovs-node"

// Status lists all components of the installation, and what should be there and is not. If something could not be
// asked, the error says so; the components that could are returned with it.
func (s *Session) Status(ctx context.Context) (out []Component, err error) {
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the pods in namespace %s: %w", s.Namespace, err)
	}
	live := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(live) == 0 {
		return nil, fmt.Errorf("namespace %s has no pods: is Northbound installed? --system-namespace names another one",
			s.Namespace)
	}
	daemons, err := s.Kube.AppsV1().DaemonSets(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the DaemonSets in namespace %s: %w", s.Namespace, err)
	}
	for _, part := range parts() {
		var found []Component
		for _, pod := range live {
			if pod.Labels["app"] == part[0] {
				found = append(found, s.component(part[1], pod))
			}
		}
		slices.SortFunc(found, func(a, b Component) int { return strings.Compare(a.Node, b.Node) })
		out = append(append(out, found...), s.missing(part, len(found), daemons.Items)...)
	}
	err = errors.Join(s.roles(ctx, out), s.tunnels(ctx, out))
	bare, listErr := s.withoutAgent(ctx, live, daemons.Items)
	return append(out, bare...), errors.Join(err, listErr)
}

// missing is what a part lacks: all of it, or some of the pods that its DaemonSet wants.
func (s *Session) missing(part [2]string, found int, daemons []appsv1.DaemonSet) []Component {
	want := 1
	if part[0] == openvswitchApp {
		want = 0
	}
	for _, d := range daemons {
		if d.Name == part[0] {
			want = int(d.Status.DesiredNumberScheduled)
		}
	}
	try := fmt.Sprintf("kubectl --namespace %s get daemonsets,deployments,pods", s.Namespace)
	switch {
	case found == 0 && want > 0:
		return []Component{{Name: part[1], Problem: "there is no pod with the label app=" + part[0], Try: try}}
	case found < want && part[0] != diagnostics.Node.App(): // withoutAgent names these
		return []Component{{Name: part[1], Problem: fmt.Sprintf("%d of %d pods are there", found, want), Try: try}}
	}
	return nil
}

// component judges a pod.
func (s *Session) component(name string, pod corev1.Pod) Component {
	c := Component{Name: name, Node: pod.Spec.NodeName, Ready: ready(pod)}
	if c.Ready {
		return c
	}
	c.Problem = "pod " + pod.Name + " is " + strings.ToLower(string(pod.Status.Phase))
	c.Try = fmt.Sprintf("kubectl --namespace %s describe pod %s", s.Namespace, pod.Name)
	for _, x := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if x.Ready || x.State.Terminated != nil && x.State.Terminated.ExitCode == 0 {
			continue
		}
		c.Problem = "container " + x.Name + " is not ready"
		switch {
		case x.State.Waiting != nil && x.State.Waiting.Reason != "":
			c.Problem += ": " + strings.TrimSuffix(x.State.Waiting.Reason+": "+x.State.Waiting.Message, ": ")
		case x.State.Terminated != nil:
			c.Problem += fmt.Sprintf(": it ended with exit code %d", x.State.Terminated.ExitCode)
		}
		if last := x.LastTerminationState.Terminated; last != nil && last.Message != "" {
			said := strings.Split(strings.TrimSpace(last.Message), "\n")
			c.Problem += ": " + said[len(said)-1]
		}
		c.Try = fmt.Sprintf("kubectl --namespace %s logs %s --container %s", s.Namespace, pod.Name, x.Name)
		if name == "node" && runs(pod) {
			c.Try = "kubectl northbound doctor " + c.Node
		}
		break
	}
	return c
}

// withoutAgent lists the Nodes that should have an agent, as its DaemonSet says, and have none.
func (s *Session) withoutAgent(
	ctx context.Context, pods []corev1.Pod, daemons []appsv1.DaemonSet,
) (out []Component, err error) {
	at := slices.IndexFunc(daemons, func(d appsv1.DaemonSet) bool { return d.Name == diagnostics.Node.App() })
	if at < 0 {
		return nil, nil
	}
	selector := labels.SelectorFromSet(daemons[at].Spec.Template.Spec.NodeSelector)
	nodes, err := s.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Labels["app"] == diagnostics.Node.App() && p.Spec.NodeName == n.Name
		}) {
			out = append(out, Component{Name: "node", Node: n.Name, Problem: "no agent runs on this node",
				Try: fmt.Sprintf("kubectl --namespace %s describe daemonset %s", s.Namespace, diagnostics.Node.App())})
		}
	}
	return out, nil
}
