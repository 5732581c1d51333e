package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// Session is a user's connection to a cluster.
type Session struct {
	Kube      kubernetes.Interface
	Namespace string // of what the chart has installed
	// Default is the namespace of pods whose names come without one.
	Default   string
	config    *rest.Config
	lookAgain time.Duration // how often a Lease is read that looks old
}

// Options say which cluster. They are kubectl's.
type Options struct {
	Kubeconfig string // "": $KUBECONFIG, else ~/.kube/config
	Context    string // "": the current one
	Namespace  string // of what the chart has installed
	Default    string // namespace of pods whose names come without one; "": that of the context
}

// New prepares a session; it does not connect.
func New(o Options) (*Session, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	overrides.Context.Namespace = o.Default
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig: %w", err)
	}
	config.UserAgent = "kubectl-northbound"
	config.QPS = -1 // the API server's priority and fairness limits requests
	s := &Session{Namespace: o.Namespace, config: config, lookAgain: time.Second}
	if s.Default, _, err = loaded.Namespace(); err != nil {
		return nil, fmt.Errorf("reading the namespace of the kubeconfig's context: %w", err)
	}
	if s.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("preparing the client of the API server %s: %w", config.Host, err)
	}
	return s, nil
}

// Server is a pod with a diagnostics server.
type Server struct {
	Place diagnostics.Place
	Node  string
	pod   string
	Ready bool // all containers of the pod
}

// ErrNoServer means that there is no diagnostics server where one was asked for.
var ErrNoServer = errors.New("no diagnostics server")

// Servers lists the servers of a place whose container runs, by node.
func (s *Session) Servers(ctx context.Context, p diagnostics.Place) (out []Server, err error) {
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + p.App()})
	if err != nil {
		return nil, fmt.Errorf("listing the pods %s in namespace %s: %w", p.App(), s.Namespace, err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || !runs(pod) {
			continue
		}
		out = append(out, Server{Place: p, Node: pod.Spec.NodeName, pod: pod.Name, Ready: ready(pod)})
	}
	slices.SortFunc(out, func(a, b Server) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}

// container is the name of the containers with diagnostics servers.
const container = "diagnostics"

func runs(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == container && c.State.Running != nil
	})
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// OnNode is the server of a place on a node. With node "" it is any, if possible one whose pod is ready.
func (s *Session) OnNode(ctx context.Context, p diagnostics.Place, node string) (Server, error) {
	all, err := s.Servers(ctx, p)
	if err != nil {
		return Server{}, err
	}
	var nodes []string
	best := -1
	for i, server := range all {
		nodes = append(nodes, server.Node)
		if server.Node == node || node == "" && (best < 0 || server.Ready && !all[best].Ready) {
			best = i
		}
	}
	if best >= 0 {
		return all[best], nil
	}
	if len(all) == 0 {
		return Server{}, fmt.Errorf("%w: no pod %s runs one in namespace %s", ErrNoServer, p.App(), s.Namespace)
	}
	return Server{}, fmt.Errorf("%w on node %q: want one of %s", ErrNoServer, node, strings.Join(nodes, ", "))
}

// Forbidden tells whether an error says that the user may not do something: to try again is no use.
func Forbidden(err error) bool { return apierrors.IsForbidden(err) }

// Nodes lists the nodes on which a place has a pod, whether its server runs or not.
func (s *Session) Nodes(ctx context.Context, p diagnostics.Place) (out []string, err error) {
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + p.App()})
	if err != nil {
		return nil, fmt.Errorf("listing the pods %s in namespace %s: %w", p.App(), s.Namespace, err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" {
			out = append(out, pod.Spec.NodeName)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// NodeOf is the node of a pod.
func (s *Session) NodeOf(ctx context.Context, namespace, name string) (string, error) {
	pod, err := s.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the pod %s/%s: %w", namespace, name, err)
	}
	if pod.Spec.HostNetwork {
		return "", fmt.Errorf("pod %s/%s uses its node's network (hostNetwork): it has no port of its own", namespace, name)
	}
	if pod.Spec.NodeName == "" {
		return "", fmt.Errorf("pod %s/%s is on no node yet", namespace, name)
	}
	return pod.Spec.NodeName, nil
}
