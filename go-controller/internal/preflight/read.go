package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/cniconf"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/xtables"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// moduleOVS is Open vSwitch's kernel module.
const moduleOVS = "openvswitch"

// Read finds out what this machine is like. It changes nothing, but listens for a moment on each port.
func Read(ctx context.Context, c Config) Facts {
	f := Facts{Modules: map[string]bool{}, Programs: map[string]string{}, Processes: map[string]bool{},
		Busy: map[Port]error{}, Unknown: map[string]error{}}
	f.kernel()
	f.programs(ctx, c)
	f.network(c)
	f.processes()
	f.networkManager(ctx)
	for _, p := range Ports(c) {
		if err := tryListen(ctx, p); err != nil {
			f.Busy[p] = err
		}
	}
	if c.Kubernetes {
		ctx, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		f.API, f.Unknown["clock"] = client.Probe(ctx, c.Node.Kubernetes, "ovnkube-preflight")
	}
	return f
}

func (f *Facts) kernel() {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		f.Unknown["kernel"] = fmt.Errorf("reading the kernel's release: %w", err)
	}
	f.Kernel = unix.ByteSliceToString(u.Release[:])
	for _, m := range []string{moduleOVS, config.EncapGeneve, config.EncapVXLAN} {
		f.Modules[m] = hasModule(m, f.Kernel)
	}
	f.Tun = exists("/dev/net/tun")
	f.IPv6 = exists("/proc/net/if_inet6")
	var t unix.Timex // without Modes, it only asks
	if _, err := unix.Adjtimex(&t); err != nil {
		f.Unknown["time-sync"] = fmt.Errorf("asking the kernel about its clock: %w", err)
	}
	f.InSync = t.Status&unix.STA_UNSYNC == 0
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// hasModule tells whether the kernel has a module: loaded, built in, or in a file (modules.dep(5)).
func hasModule(name, release string) bool {
	if exists("/sys/module/" + name) {
		return true
	}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text, err := os.ReadFile(filepath.Join("/lib/modules", release, list))
		if err == nil && strings.Contains(string(text), "/"+name+".ko") {
			return true
		}
	}
	return false
}

func (f *Facts) programs(ctx context.Context, c Config) {
	for name := range programs(c) {
		if version, found := doctor.ProgramVersion(ctx, name); found {
			f.Programs[name] = version
		}
	}
}

func (f *Facts) network(c Config) {
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		f.Unknown["mtu"], f.Unknown["other-network"], f.Unknown["kube-proxy"] = err, err, err
		return
	}
	defer kernel.Close()
	if f.Links, err = kernel.LinkNames(); err != nil {
		f.Unknown["other-network"], f.Unknown["kube-proxy"] = err, err
	}
	if f.Chains, err = nft.Chains(); err != nil {
		f.Unknown["other-network"], f.Unknown["kube-proxy"], f.Unknown["firewall"] = err, err, err
	}
	if f.Legacy, err = xtables.Tables(); err != nil {
		f.Unknown["iptables-legacy"] = err
	}
	if f.UFW, err = readUFW("/"); err != nil {
		f.Unknown["ufw"] = err
	}
	if f.ConfFiles, err = cniconf.Files(c.Node.CNIConfDir); err != nil {
		f.Unknown["other-network"] = err
	}
	f.Multus = cniconf.MultusFirst(c.Node.CNIConfDir)
	for _, a := range tunnelAddresses(kernel, c.Node) {
		place, _, err := kernel.Find(a)
		if err != nil {
			f.Unknown["mtu"] = err
		}
		f.Underlay = append(f.Underlay, Underlay{a, place})
	}
}

// tunnelAddresses are those of --encap-ip, else the addresses from which packets leave by the default routes.
func tunnelAddresses(kernel *hostnet.Netlink, n config.Node) (out []netip.Addr) {
	if len(n.EncapIPs) > 0 {
		return n.EncapIPs
	}
	// No machine has these addresses (RFC 5737, RFC 3849).
	for _, outside := range []string{"192.0.2.1", "2001:db8::1"} {
		if a, err := kernel.SourceTo(netip.MustParseAddr(outside)); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// processes reads the names of running programs (proc_pid_comm(5)).
func (f *Facts) processes() {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil || len(files) == 0 {
		err = errors.Join(err, errors.New("/proc lists no process"))
		f.Unknown["kube-proxy"], f.Unknown["firewall"], f.Unknown["networkmanager"] = err, err, err
	}
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil { // else it has ended
			f.Processes[strings.TrimSpace(string(name))] = true
		}
	}
}

// tryListen tells why nothing can listen on a port, and leaves the port free.
func tryListen(ctx context.Context, p Port) error {
	var l net.ListenConfig
	if p.Network == "udp" {
		conn, err := l.ListenPacket(ctx, "udp", p.Address)
		if err == nil {
			err = conn.Close()
		}
		return cause(err)
	}
	listener, err := l.Listen(ctx, "tcp", p.Address)
	if err == nil {
		err = listener.Close()
	}
	return cause(err)
}

// cause is the system's own error, without the address.
func cause(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
