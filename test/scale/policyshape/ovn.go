package policyshape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const (
	startTimeout = 60 * time.Second
	pollInterval = 5 * time.Millisecond
	mount        = "/mnt" // of the directory of sockets, in the root filesystem
)

// ovn is what runs of OVN and Open vSwitch, from a root filesystem.
type ovn struct {
	root, dir                    string // dir is on the host
	nb, sb, conf                 *ovsdbwire.Client
	northd, controller, openflow *process.Process
	databases                    []*process.Process
}

// newOVN prepares a directory below that of all, which is mounted over mount.
func newOVN(root, all, name string) (*ovn, error) {
	o := &ovn{root: root, dir: filepath.Join(all, name)}
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	return o, nil
}

// mountAt shows a directory, and the kernel's files, in a root filesystem. The caller is in a mount namespace of its
// own.
func mountAt(root, dir string) error {
	for from, to := range map[string]string{dir: mount, "/proc": "/proc", "/dev": "/dev"} {
		if err := unix.Mount(from, filepath.Join(root, to), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s in %s: %w", from, root, err)
		}
	}
	return nil
}

// inside is the path of a file of dir in the root filesystem.
func (o *ovn) inside(name string) string { return filepath.Join(mount, filepath.Base(o.dir), name) }

// arguments are those of chroot, to run a program.
func (o *ovn) arguments(program []string) []string {
	here := o.inside("")
	return append([]string{o.root, "env", "OVS_RUNDIR=" + here, "OVN_RUNDIR=" + here, "OVS_LOGDIR=" + here,
		"OVN_LOGDIR=" + here, "OVS_DBDIR=" + here}, program...)
}

// start starts a daemon. chroot and env become it, so the process is the daemon's.
func (o *ovn) start(name string, program ...string) (*process.Process, error) {
	chroot, err := process.Find("chroot", "coreutils")
	if err != nil {
		return nil, err
	}
	program = append(program, "--no-chdir", "-vsyslog:off", "--unixctl="+o.inside(name+".ctl"))
	return process.Start(name, filepath.Join(o.dir, name+".log"), chroot, o.arguments(program)...)
}

// run runs a program and returns its output.
func (o *ovn) run(ctx context.Context, program ...string) (string, error) {
	chroot, err := process.Find("chroot", "coreutils")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, chroot, o.arguments(program)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s: %w: %s", program[0], err, out)
	}
	return string(out), nil
}

// appctl asks a daemon.
func (o *ovn) appctl(ctx context.Context, daemon string, command ...string) (string, error) {
	return o.run(ctx, append([]string{"ovn-appctl", "--timeout=300", "-t", o.inside(daemon + ".ctl")}, command...)...)
}

// database creates a database and starts its server.
func (o *ovn) database(ctx context.Context, name, schema string) (*ovsdbwire.Client, error) {
	if _, err := o.run(ctx, "ovsdb-tool", "create", o.inside(name+".db"), "/usr/share/"+schema); err != nil {
		return nil, err
	}
	p, err := o.start(name, "ovsdb-server", "--remote=punix:"+o.inside(name+".sock"), o.inside(name+".db"))
	if err != nil {
		return nil, err
	}
	o.databases = append(o.databases, p)
	return o.dial(ctx, name)
}

// dial connects to a database when its server listens.
func (o *ovn) dial(ctx context.Context, name string) (*ovsdbwire.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		c, err := ovsdbwire.Dial(filepath.Join(o.dir, name+".sock"))
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// central starts the databases. ovn-northd starts when the Northbound one is full.
func (o *ovn) central(ctx context.Context) (err error) {
	if o.nb, err = o.database(ctx, "nb", "ovn/ovn-nb.ovsschema"); err != nil {
		return err
	}
	if o.sb, err = o.database(ctx, "sb", "ovn/ovn-sb.ovsschema"); err != nil {
		return err
	}
	o.conf, err = o.database(ctx, "conf", "openvswitch/vswitch.ovsschema")
	return err
}

func (o *ovn) startNorthd() (err error) {
	o.northd, err = o.start("northd", "ovn-northd", "--ovnnb-db=unix:"+o.inside("nb.sock"),
		"--ovnsb-db=unix:"+o.inside("sb.sock"))
	return err
}

// fakeChassis makes all chassis but the first, and binds the pods to them.
func (o *ovn) fakeChassis(l *cluster) error {
	for n := 1; n < l.Switches; n++ {
		name := nodeName(n)
		ops := []any{
			insert("Encap", name, map[string]any{"type": "geneve", "ip": fmt.Sprintf("192.0.2.%d", n), "chassis_name": name}),
			insert("Chassis", name, map[string]any{"name": name, "hostname": name, "encaps": refs("Encap", name)})}
		for i := range l.Pods {
			ops = append(ops, bind(pod{n, i}))
		}
		if err := o.sb.Transact(southbound, ops...); err != nil {
			return fmt.Errorf("making chassis %s: %w", name, err)
		}
	}
	return nil
}

// bind binds a pod's port to its fake chassis.
func bind(p pod) operation {
	return operation{"op": "update", "table": "Port_Binding", "where": []any{[]any{"logical_port", "==", p.name()}},
		"row": map[string]any{"chassis": ref("Chassis", nodeName(p.node)), "up": true}}
}

// startSwitch starts Open vSwitch for the first chassis, with interfaces for its pods and for so many later ones.
func (o *ovn) startSwitch(ctx context.Context, pods int) (err error) {
	o.openflow, err = o.start("vswitchd", "ovs-vswitchd", "--enable-dummy=override", "--disable-system",
		"unix:"+o.inside("conf.sock"))
	if err != nil {
		return err
	}
	args := []string{"ovs-vsctl", "--db=unix:" + o.inside("conf.sock"), "--timeout=60", "--no-wait", "init",
		"--", "set", "Open_vSwitch", ".", "external_ids:system-id=" + nodeName(0), "external_ids:hostname=" + nodeName(0),
		"external_ids:ovn-remote=unix:" + o.inside("sb.sock"), "external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip=192.0.2.254", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1",
		"--", "add-br", "br-int", "--", "set", "bridge", "br-int", "fail-mode=secure", "datapath_type=netdev"}
	for i := range pods {
		name := interfaceOf(i)
		args = append(args, "--", "add-port", "br-int", name, "--", "set", "Interface", name,
			"external_ids:iface-id="+pod{0, i}.name())
	}
	_, err = o.run(ctx, args...)
	return err
}

func interfaceOf(i int) string { return fmt.Sprintf("vif%d", i) }

func (o *ovn) startController() (err error) {
	o.controller, err = o.start("controller", "ovn-controller", "unix:"+o.inside("conf.sock"))
	return err
}

// close ends everything.
func (o *ovn) close() error {
	var errs []error
	for _, c := range []*ovsdbwire.Client{o.nb, o.sb, o.conf} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for _, p := range append([]*process.Process{o.controller, o.openflow, o.northd}, o.databases...) {
		if p != nil {
			errs = append(errs, p.Kill()) // their data is removed, so they need not end in order
		}
	}
	return errors.Join(errs...)
}
