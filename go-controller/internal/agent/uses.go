package agent

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// The time between two look-ups of the names among what this node uses, and how long a look-up may take.
const (
	resolveInterval = 30 * time.Second
	resolveTimeout  = time.Second
)

// usage is what programs of this node connect to, and addresses that no service may have. What can't be read keeps its
// last value.
type usage struct {
	api, databases []string                      // HOST:PORT
	tunnels        []netip.Addr                  // of other nodes
	node           []netip.Addr                  // this node's own addresses
	resolved       map[string][]netip.AddrPort   // by HOST:PORT
	asked          time.Time                     // when names were looked up
	held           map[netip.Addr]cluster.Holder // addresses that no service may have
	to             []netip.AddrPort              // all that is in api and databases, sorted
}

// uses brings the usage up to date.
func (a *Agent) uses(ctx context.Context, node local.Node) {
	u := &a.memory.uses
	u.api = nil
	if host := serverHost(a.kube.Server()); host != "" {
		u.api = []string{host}
	}
	if a.ovs != nil && a.ovs.Connected() {
		var remotes []string
		for _, key := range []string{names.OVSRemote, names.OVSNorthbound} {
			if v, err := a.ovs.ExternalID(key); err == nil {
				remotes = append(remotes, config.RemoteHosts(v)...)
			}
		}
		u.databases, u.tunnels = remotes, a.ovs.Tunnels()
	}
	a.resolve(ctx, slices.Concat(u.api, u.databases))
	if node.UID != "" {
		u.node = hostfacts.Addrs(node.InternalIPs)
	}
	u.to = nil
	held := hostfacts.Held{Tunnels: u.tunnels, Own: u.node}
	for _, of := range []struct {
		hosts []string
		addrs *[]netip.Addr
	}{{u.databases, &held.Databases}, {u.api, &held.API}} {
		for _, host := range of.hosts {
			for _, to := range u.resolved[host] {
				if !to.Addr().IsUnspecified() {
					*of.addrs, u.to = append(*of.addrs, to.Addr()), append(u.to, to)
				}
			}
		}
	}
	slices.SortFunc(u.to, netip.AddrPort.Compare)
	u.to, u.held = slices.Compact(u.to), held.Holders(a.config.Name)
}

// resolve finds the addresses of hosts. Names are looked up seldom, and briefly: a pass waits for that.
func (a *Agent) resolve(ctx context.Context, hosts []string) {
	u := &a.memory.uses
	now, look := make(map[string][]netip.AddrPort, len(hosts)), time.Since(u.asked) >= resolveInterval
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	for _, host := range hosts {
		if to, err := netip.ParseAddrPort(host); err == nil {
			now[host] = []netip.AddrPort{netip.AddrPortFrom(to.Addr().Unmap(), to.Port())}
			continue
		}
		last, known := u.resolved[host]
		now[host] = last
		if look || !known {
			u.asked = time.Now()
			if to := lookUp(ctx, host); len(to) > 0 {
				now[host] = to
			}
		}
	}
	u.resolved = now
}

// lookUp is the addresses of HOST:PORT, none while they can't be found.
func lookUp(ctx context.Context, host string) (out []netip.AddrPort) {
	name, text, err := net.SplitHostPort(host)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil {
		return nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	for _, addr := range addrs {
		out = append(out, netip.AddrPortFrom(addr.Unmap(), uint16(port)))
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}

// serverHost is HOST:PORT of an API server's URL, "" when it has none.
func serverHost(server string) string {
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
