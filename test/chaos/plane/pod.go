package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/scale/load"
)

// Pod is a pod with a network namespace, which has the interface of its primary network.
type Pod struct {
	name  string // of the network namespace
	Addrs []netip.Addr
}

// attachment is an interface, as a pod's annotation says.
type attachment struct {
	IPs      []netip.Prefix `json:"ip_addresses"`
	MAC      string         `json:"mac_address"`
	Gateways []netip.Addr   `json:"gateway_ips"`
}

// primaryOf is a pod's interface in its primary network, and the name of its logical port.
func primaryOf(pod *corev1.Pod) (of attachment, port string, err error) {
	var all map[string]attachment
	if err := json.Unmarshal([]byte(pod.Annotations[load.PodNetworks]), &all); err != nil {
		return of, "", fmt.Errorf("reading what pod %s/%s has: %w", pod.Namespace, pod.Name, err)
	}
	of, port = all["default"], pod.Namespace+"_"+pod.Name
	for key, further := range all {
		if network, iface, ok := strings.Cut(key, "/"); ok {
			of, port = further, network+"_"+port+"_"+iface
		}
	}
	return of, port, nil
}

// Attach makes the network namespace of a pod on the i-th node, and waits until its port has flows there.
func (p *Plane) Attach(ctx context.Context, i int, pod *corev1.Pod) (*Pod, error) {
	of, port, err := primaryOf(pod)
	if err != nil {
		return nil, err
	}
	node, out := load.NodeName(i), &Pod{name: pod.Namespace + "-" + pod.Name}
	p.links++
	link := fmt.Sprintf("pod%d", p.links) // names of links have 15 letters at most
	err = p.shell(ctx, `ip netns add "$1"; ip -n "$1" link set lo up
		ip link add "$2" netns "$3" type veth peer name eth0 netns "$1"
		ip -n "$3" link set "$2" up; ip -n "$1" link set eth0 address "$4" mtu 1400 up
		ip netns exec "$1" ethtool -K eth0 tx off`, out.name, link, node, of.MAC)
	if err != nil {
		return nil, err
	}
	for _, ip := range of.IPs {
		out.Addrs = append(out.Addrs, ip.Addr())
		if err := p.shell(ctx, `ip -n "$1" addr add "$2" dev eth0 nodad`, out.name, ip.String()); err != nil {
			return nil, err
		}
	}
	for _, gateway := range of.Gateways {
		if err := p.shell(ctx, `ip -n "$1" route add default via "$2"`, out.name, gateway.String()); err != nil {
			return nil, err
		}
	}
	if err := wait(ctx, "br-int of "+node, func(ctx context.Context) error {
		return p.shell(ctx, `ovs-vsctl --db="$1" --timeout=10 br-exists br-int`, p.conf(i))
	}); err != nil {
		return nil, err
	}
	if err := p.shell(ctx, `ovs-vsctl --db="$1" --timeout=30 add-port br-int "$2" -- set Interface "$2" \
		external_ids:iface-id="$3" external_ids:iface-id-ver="$4"`, p.conf(i), link, port, string(pod.UID)); err != nil {
		return nil, err
	}
	return out, wait(ctx, "the flows of port "+port, func(ctx context.Context) error {
		return p.shell(ctx, `ovs-vsctl --db="$1" --timeout=10 get Interface "$2" external_ids:ovn-installed | grep -q true`,
			p.conf(i), link)
	})
}

// Ping sends 50 packets a second to an address, for two hours at most: it may outlive what should end it.
func (p *Pod) Ping(ctx context.Context, to netip.Addr) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", "netns", "exec", p.name, "ping", "-n", "-w", "7200", "-i", "0.02", to.String())
}
