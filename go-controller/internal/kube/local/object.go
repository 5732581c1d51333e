package local

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Pod is what a node agent needs to know of a pod.
type Pod struct {
	Namespace, Name string
	UID             string // of the Pod object
	StaticUID       string // for the mirror of a static pod, the UID that the kubelet uses; else ""
	Network         string // value of the pod-networks annotation, "" until the master has written it
	Created         int64  // creation time, Unix seconds
	Macvlan         string // the node's interface on which it asks for a macvlan, as kinds.MacvlanOf has it
	NoMacvlan       string // why it does not get that; "" if it may
	Released        bool   // shares its node's network or has finished: it has no address, whatever its annotation says
	Before          string // UID of the last pod of this name that went within the last minutes; "" for none
}

// HasUID tells whether the kubelet may mean this pod by uid; "" is any.
func (p Pod) HasUID(uid string) bool {
	return uid == "" || uid == p.UID || uid == p.StaticUID
}

func decodePod(obj runtime.Object) (p Pod, keep bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return p, false
	}
	return Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		StaticUID: pod.Annotations[corev1.MirrorPodAnnotationKey], Network: pod.Annotations[annotation.PodNetworks],
		Created: pod.CreationTimestamp.Unix(), Macvlan: kinds.MacvlanOf(pod), NoMacvlan: kinds.RefusesMacvlan(pod),
		Released: pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}, true
}

// Node is what a node agent needs to know of its own Node.
type Node struct {
	UID         string
	Labels      map[string]string
	Annotations map[string]string
	InternalIPs []string // status.addresses of type InternalIP, in their order
}

// Equal tells whether o says the same. A heartbeat changes nothing.
func (n Node) Equal(o Node) bool {
	return n.UID == o.UID && maps.Equal(n.Annotations, o.Annotations) && maps.Equal(n.Labels, o.Labels) &&
		slices.Equal(n.InternalIPs, o.InternalIPs)
}

func decodeNode(obj runtime.Object) (n Node, keep bool) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return n, false
	}
	return nodeOf(node), true
}

func nodeOf(node *corev1.Node) Node {
	n := Node{UID: string(node.UID), Labels: node.Labels, Annotations: node.Annotations}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			n.InternalIPs = append(n.InternalIPs, a.Address)
		}
	}
	return n
}

// ReadNode reads one Node; ok is false when there is none.
func ReadNode(ctx context.Context, c *client.Clients, name string) (n Node, ok bool, err error) {
	node, err := c.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n, false, nil
	}
	if err != nil {
		return n, false, fmt.Errorf("reading Node %q: %w", name, err)
	}
	return nodeOf(node), true, nil
}

// decodeWith keeps an object as the cluster value that its row makes. The master, not every node, reports what is wrong
// with the object.
func decodeWith[T cluster.Object](k kinds.Kind) func(runtime.Object) (T, bool) {
	return func(obj runtime.Object) (T, bool) {
		o, _ := k.Decode(obj)
		now, ok := o.(T)
		return now, ok
	}
}

func equal[T cluster.Object](a, b T) bool { return a.Equal(b) }
