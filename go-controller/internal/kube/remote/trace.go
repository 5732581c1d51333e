package remote

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Attached is a pod's port of the cluster's own network.
type Attached struct {
	Port    string // the logical port
	Switch  string // of the pod's node
	Network annotation.PodNetwork
}

// Attached reads what the master has given to a pod.
func (s *Session) Attached(ctx context.Context, namespace, name string) (a Attached, err error) {
	node, err := s.NodeOf(ctx, namespace, name)
	if err != nil {
		return a, err
	}
	pod, err := s.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return a, fmt.Errorf("reading the pod %s/%s: %w", namespace, name, err)
	}
	value := pod.Annotations[annotation.PodNetworks]
	if value == "" {
		return a, fmt.Errorf("pod %s/%s has no annotation %s: the master has given it no address yet", namespace, name,
			annotation.PodNetworks)
	}
	a.Port, a.Switch = names.Own.LogicalPort(namespace, name, ""), names.Own.NodeSwitch(node)
	if a.Network, err = annotation.ParsePodNetworks(value); err != nil {
		return a, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	return a, nil
}

// Protocols are those of a Microflow.
func Protocols() []string { return []string{"tcp", "udp", "sctp"} }

// sourcePort is the source port of a Microflow: any that no service has.
const sourcePort = 50000

// Microflow describes the first packet from a pod to [NAMESPACE/]POD, an address or svc/[NAMESPACE/]NAME. Without a
// port
// it is an ICMP echo request. Source: ovn-trace(8), "MICROFLOW".
func (s *Session) Microflow(ctx context.Context, from Attached, to, port, protocol string) (string, error) {
	addresses, neighbour, err := s.addresses(ctx, to)
	if err != nil {
		return "", err
	}
	for i, p := range from.Network.IPs {
		for _, a := range addresses {
			if a.Is4() != p.Addr().Is4() {
				continue
			}
			next := neighbour.Network.MAC
			if neighbour.Switch != from.Switch {
				if i >= len(from.Network.Gateways) {
					return "", fmt.Errorf("pod of port %s has no gateway: it can reach its own node's pods only", from.Port)
				}
				next = ipnet.MACFor(from.Network.Gateways)
			}
			return microflow(from, next, p.Addr(), a, port, protocol)
		}
	}
	return "", fmt.Errorf("%s and %s have no address of the same family", from.Port, to)
}

func microflow(from Attached, next ipnet.MAC, source, to netip.Addr, port, protocol string) (string, error) {
	ip, icmp := "ip4", "icmp4.type==8"
	if to.Is6() {
		ip, icmp = "ip6", "icmp6.type==128"
	}
	match := icmp
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", fmt.Errorf("port %q: want a number from 1 to 65535", port)
		}
		match = fmt.Sprintf("%s && %s.src==%d && %s.dst==%d", protocol, protocol, sourcePort, protocol, n)
	}
	return fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 && %s",
		from.Port, from.Network.MAC, next, ip, source, ip, to, match), nil
}

// addresses are those of a destination; neighbour is its port if it is a pod.
func (s *Session) addresses(ctx context.Context, to string) (out []netip.Addr, neighbour Attached, err error) {
	if a, err := netip.ParseAddr(strings.Trim(to, "[]")); err == nil {
		return []netip.Addr{a.Unmap()}, neighbour, nil
	}
	if name, ok := strings.CutPrefix(to, "svc/"); ok {
		out, err = s.clusterIPs(ctx, name)
		return out, neighbour, err
	}
	namespace, name := s.Default, strings.TrimPrefix(to, "pod/")
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	neighbour, err = s.Attached(ctx, namespace, name)
	for _, p := range neighbour.Network.IPs {
		out = append(out, p.Addr())
	}
	return out, neighbour, err
}

func (s *Session) clusterIPs(ctx context.Context, name string) (out []netip.Addr, err error) {
	namespace := s.Default
	if ns, n, ok := strings.Cut(name, "/"); ok {
		namespace, name = ns, n
	}
	service, err := s.Kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the service %s/%s: %w", namespace, name, err)
	}
	for _, ip := range service.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil && ip != corev1.ClusterIPNone {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("service %s/%s has no ClusterIP: trace one of its pods", namespace, name)
	}
	return out, nil
}
