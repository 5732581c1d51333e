package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
)

const (
	startTimeout = time.Minute // on a busy machine
	pollInterval = 20 * time.Millisecond
	namespaces   = "/run/netns" // where ip(8) keeps them
)

// Plane is what forwards packets. The caller is in network and mount namespaces of its own, with which all of it ends.
type Plane struct {
	dir       string // of every file
	northd    *process.Process
	processes []*process.Process // but ovn-northd
	links     int                // of pods
}

// New starts a Plane for a Northbound database at these addresses, with so many nodes, named as load.NodeName does.
func New(ctx context.Context, dir, northbound string, nodes int) (p *Plane, err error) {
	p = &Plane{dir: dir}
	if err := os.MkdirAll(namespaces, 0o755); err != nil {
		return p, fmt.Errorf("making the directory of network namespaces: %w", err)
	}
	if err := unix.Mount("tmpfs", namespaces, "tmpfs", 0, ""); err != nil {
		return p, fmt.Errorf("mounting %s anew: %w", namespaces, err)
	}
	if err := p.database(ctx, dir, "sb", "/usr/share/ovn/ovn-sb.ovsschema"); err != nil {
		return p, err
	}
	if err := p.shell(ctx, "ip link add wire type bridge; ip link set wire up"); err != nil {
		return p, err
	}
	// An ovn-controller of OVN 23.03 that starts before the first ovn-northd crashes.
	if err := p.Follow(northbound); err != nil {
		return p, err
	}
	if err := wait(ctx, "ovn-northd to begin", func(ctx context.Context) error {
		return p.shell(ctx, `ovn-sbctl --db="$1" --timeout=5 get SB_Global . _uuid`, p.southbound())
	}); err != nil {
		return p, err
	}
	for i := range nodes {
		if err := p.node(ctx, i); err != nil {
			return p, fmt.Errorf("starting node %s: %w", load.NodeName(i), err)
		}
	}
	return p, nil
}

// Follow has ovn-northd, started anew, follow a Northbound database at these addresses.
func (p *Plane) Follow(northbound string) (err error) {
	if p.northd != nil {
		if err := p.northd.Kill(); err != nil {
			return err
		}
	}
	p.northd, err = p.start("ovn-northd", "northd.log", "ovn-northd", "--no-chdir", "-vsyslog:off",
		"--unixctl="+p.path("northd.ctl"), "--ovnnb-db="+northbound, "--ovnsb-db="+p.southbound())
	return err
}

// RecomputeOld has the nodes' ovn-controllers compute all flows anew if they are of OVN 23.03. Newer ones must do
// without.
func (p *Plane) RecomputeOld(ctx context.Context) error {
	return p.shell(ctx, `ovn-controller --version | grep -q "^ovn-controller 23\.03" || exit 0
		for socket in "$1"/*/ovn-controller.*.ctl; do
		ovn-appctl --timeout=30 -t "$socket" inc-engine/recompute; done`, p.dir)
}

// Close ends every process. Their data is the caller's to remove, so they need not end in order.
func (p *Plane) Close() error {
	var errs []error
	if p.northd != nil {
		errs = append(errs, p.northd.Kill())
	}
	for i := len(p.processes) - 1; i >= 0; i-- {
		errs = append(errs, p.processes[i].Kill())
	}
	return errors.Join(errs...)
}

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *Plane) southbound() string { return "unix:" + p.path("sb.sock") }

// node starts Open vSwitch and ovn-controller in a network namespace, whose NIC is on the bridge "wire".
func (p *Plane) node(ctx context.Context, i int) error {
	name := load.NodeName(i)
	dir := p.path(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	// A veth never fills in the checksums that Linux leaves to the NIC.
	err := p.shell(ctx, `ip netns add "$1"; ip -n "$1" link set lo up
		ip link add "nic$2" type veth peer name eth1 netns "$1"; ip link set "nic$2" master wire up
		ip -n "$1" link set eth1 up; ip netns exec "$1" ethtool -K eth1 tx off
		ip netns exec "$1" sysctl -q -w net.ipv4.conf.all.arp_ignore=1`, name, fmt.Sprint(i))
	if err != nil {
		return err
	}
	if err := p.database(ctx, dir, "db", "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return err
	}
	if err := p.daemon(name, "ovs-vswitchd", "--unixctl="+filepath.Join(dir, "switch.ctl"), p.conf(i)); err != nil {
		return err
	}
	err = p.shell(ctx, `db=$1; node=$2
		vs() { ip netns exec "$node" ovs-vsctl --db="$db" --timeout=30 "$@"; }
		vs --no-wait init -- set Open_vSwitch . other_config:n-handler-threads=1 other_config:n-revalidator-threads=1
		vs add-br br-phys -- set bridge br-phys datapath_type=netdev other_config:hwaddr=02:00:00:00:01:0$3 -- \
		  add-port br-phys eth1
		ip -n "$node" link set br-phys up; ip -n "$node" addr add "192.0.2.$3/24" dev br-phys
		vs set Open_vSwitch . external_ids:system-id="$4" external_ids:hostname="$node" \
		  external_ids:ovn-remote="$5" external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip="192.0.2.$3" \
		  external_ids:ovn-bridge-datapath-type=netdev`,
		p.conf(i), name, fmt.Sprint(1+i), load.ChassisID(i), p.southbound())
	if err != nil {
		return err
	}
	return p.daemon(name, "ovn-controller", p.conf(i))
}

// conf is the address of the i-th node's database of Open vSwitch.
func (p *Plane) conf(i int) string {
	return "unix:" + filepath.Join(p.path(load.NodeName(i)), "db.sock")
}

// daemon starts a program in a node.
func (p *Plane) daemon(node, program string, args ...string) error {
	path, err := process.Find(program, "openvswitch-switch and ovn-host")
	if err != nil {
		return err
	}
	started, err := p.start(program+" of "+node, filepath.Join(node, program+".log"), "ip", append([]string{"netns",
		"exec", node, "env", "OVS_RUNDIR=" + p.path(node), "OVN_RUNDIR=" + p.path(node), path, "--no-chdir",
		"-vsyslog:off"}, args...)...)
	if err == nil {
		p.processes = append(p.processes, started)
	}
	return err
}

// start starts a program. Those that ip(8) and env(1) run take their place.
func (p *Plane) start(name, log, program string, args ...string) (*process.Process, error) {
	path, err := process.Find(program, "ovn-central and iproute2")
	if err != nil {
		return nil, err
	}
	return process.Start(name, p.path(log), path, args...)
}

// database creates a database in a directory, and starts its server.
func (p *Plane) database(ctx context.Context, dir, name, schema string) error {
	file, socket := filepath.Join(dir, name+".db"), filepath.Join(dir, name+".sock")
	if err := p.shell(ctx, `ovsdb-tool create "$1" "$2"`, file, schema); err != nil {
		return err
	}
	path, err := process.Find("ovsdb-server", "openvswitch-common")
	if err != nil {
		return err
	}
	server, err := process.Start("ovsdb-server of "+file, file+".log", path, "--no-chdir", "-vsyslog:off",
		"--unixctl="+filepath.Join(dir, name+".ctl"), "--remote=punix:"+socket, file)
	if err != nil {
		return err
	}
	p.processes = append(p.processes, server)
	return wait(ctx, "a database to answer", func(ctx context.Context) error {
		return p.shell(ctx, `ovsdb-client --timeout=5 list-dbs "$1"`, "unix:"+socket)
	})
}

// shell runs a script to its end. Its arguments are $1 and so on.
func (p *Plane) shell(ctx context.Context, script string, args ...string) error {
	out, err := exec.CommandContext(ctx, "sh", append([]string{"-ec", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s: %w: %s", script, err, out)
	}
	return nil
}

// wait tries until there is no error.
func wait(ctx context.Context, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(pollInterval):
		}
	}
}
