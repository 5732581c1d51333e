package ovspod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Tunnel says which NIC the tunnels use.
type Tunnel struct {
	Interface string // the NIC; "" for that of the node's own address
	Undo      string // the directory of nics-to-bridge's undo files
	Server    string // URL of the API server
	OVS       string // address of the Open_vSwitch database
	Ovnkube   string // the program, whose nics-to-bridge moves the NIC
	Log       *slog.Logger
}

// address is the NIC's first address, wherever it is now.
func (t Tunnel) address() (out netip.Addr, ok bool) {
	if t.Interface == "" {
		return out, false
	}
	for _, link := range []string{names.UplinkBridge(t.Interface), t.Interface} {
		for _, a := range addresses(link) {
			if !ok || a.Is4() && !out.Is4() {
				out, ok = a, true
			}
		}
	}
	return out, ok
}

// addresses are those of a link that other machines may reach.
func addresses(link string) (out []netip.Addr) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return nil
	}
	all, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			out = append(out, p.Addr())
		}
	}
	return out
}

// refuse is the error that the node reaches the API server by a link of the userspace datapath. Without a pod of Open
// vSwitch, the node could not reach it, and without the API server, the node would get no such pod.
func (t Tunnel) refuse(ctx context.Context, datapath string, interfaces []string) error {
	if datapath != config.DatapathNetdev {
		return nil
	}
	if t.Interface != "" {
		interfaces = append(interfaces, t.Interface, names.UplinkBridge(t.Interface))
	}
	link, err := linkTo(ctx, t.Server)
	if err != nil {
		t.Log.Warn("finding out by which link the API server is reached failed", "server", t.Server, "error", err)
		return nil
	}
	if !slices.Contains(interfaces, link) {
		return nil
	}
	return fmt.Errorf("this node reaches the API server %s by %s, which is or would be a port of the userspace "+
		"datapath: after a reboot, the node would be cut off for ever: want another NIC in openvswitch.tunnelInterface, "+
		"or Open vSwitch on the machine itself and openvswitch.inPods=false", t.Server, link)
}

// linkTo finds the link of the address from which packets to a server leave.
func linkTo(ctx context.Context, server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), port)) // sends nothing
	if err != nil {
		return "", err
	}
	defer conn.Close()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return "", err
	}
	links, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		if slices.Contains(addresses(l.Name), from.Addr().WithZone("")) {
			return l.Name, nil
		}
	}
	return "", fmt.Errorf("no interface has the address %s", from.Addr())
}

// keep has the NIC be in a bridge, which has its addresses, if the userspace datapath is to send tunnels' packets.
// After a reboot the machine has configured the NIC again.
func (t Tunnel) keep(ctx context.Context, datapath string) error {
	if t.Interface == "" || datapath != config.DatapathNetdev || len(addresses(names.UplinkBridge(t.Interface))) > 0 {
		return nil
	}
	how := "--boot" // it was moved before
	if _, err := os.Stat(filepath.Join(t.Undo, t.Interface+".json")); err != nil {
		how = "--no-confirm" // the node reaches the API server by another link
	}
	cmd := exec.CommandContext(ctx, t.Ovnkube, "nics-to-bridge", how, "--datapath-type="+datapath,
		"--ovs-address="+t.OVS, "--state-dir="+t.Undo, t.Interface)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(errors.New("see the lines before this one"), err)
	}
	return nil
}
