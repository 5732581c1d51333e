package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/before"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// Node is a machine to clean up.
type Node struct {
	OVSAddress     string // unix:PATH
	OVNRunDir      string // of ovn-controller's control socket
	CNIConfDir     string // of the runtime's network configurations
	CNIBinDir      string // of the runtime's plugins
	CNISocketDir   string // of the agent's socket
	StateDir       string // has the directory of certificates
	DatabaseDir    string // of the files of OVN's databases; "" leaves these alone
	OpenvSwitchDir string // of Open vSwitch's system-id.conf
	Bridge         string // which the chart has made for the tunnels' NIC; "" for none
	// Return gives the NIC back what that bridge has, and removes the bridge.
	Return     func(ctx context.Context, bridge string) error
	CutOffPods bool          // go on although pods have ports in br-int
	DryRun     bool          // only print
	Timeout    time.Duration // how long to wait for Open vSwitch
	Out        io.Writer     // gets a line for each change
	Log        *slog.Logger
}

// step is one change, and how ip(8), ovs-vsctl(8) and others would show it.
type step struct {
	line string
	do   func(context.Context) error
}

// Run cleans up, prints what it changes, and goes on after a failure. It changes nothing while the agent or
// ovn-controller runs, since they would put everything back, and while there are pods, unless CutOffPods.
func (n Node) Run(ctx context.Context) error {
	if err := errors.Join(n.checkDirectories(), n.refuseRunning(ctx)); err != nil {
		return err
	}
	db, err := n.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return err
	}
	defer kernel.Close()
	if err := n.refusePods(db, kernel); err != nil {
		return err
	}
	changed, err := n.carryOut(ctx,
		n.configuration, // so that the runtime starts no pod
		func() ([]step, error) { return n.openVSwitch(ctx, db) },
		func() ([]step, error) { return n.tunnelBridge(db), nil },
		func() ([]step, error) { return n.kernel(ctx, db, kernel) },
		func() ([]step, error) { return n.systemID(db) })
	if err != nil {
		return err // another attempt needs the record of sysctls
	}
	more, err := n.carryOut(ctx, n.files)
	if err == nil && !changed && !more {
		fmt.Fprintln(n.Out, "Nothing to clean up.")
	}
	return err
}

// carryOut makes the changes of groups. Each group is read when those before it are done: a bridge that goes takes
// routes along. It goes on after a failure, and tells whether there was something to change.
func (n Node) carryOut(ctx context.Context, groups ...func() ([]step, error)) (changed bool, err error) {
	var errs []error
	for _, group := range groups {
		steps, err := group()
		errs = append(errs, err)
		for _, s := range steps {
			changed = true
			fmt.Fprintln(n.Out, s.line)
			if n.DryRun {
				continue
			}
			if err := s.do(ctx); err != nil {
				errs = append(errs, fmt.Errorf("applying %q: %w", s.line, err))
			}
		}
	}
	return changed, errors.Join(errs...)
}

// checkDirectories is the error that a directory is not an absolute path.
func (n Node) checkDirectories() error {
	var errs []error
	for flag, dir := range map[string]string{"--cni-conf-dir": n.CNIConfDir, "--cni-bin-dir": n.CNIBinDir,
		"--cni-socket-dir": n.CNISocketDir, "--state-dir": n.StateDir, "--openvswitch-dir": n.OpenvSwitchDir} {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("%s %q: want an absolute path", flag, dir))
		}
	}
	if n.DatabaseDir != "" && !filepath.IsAbs(n.DatabaseDir) {
		errs = append(errs, fmt.Errorf("--databases-dir %q: want an absolute path", n.DatabaseDir))
	}
	return errors.Join(errs...)
}

// refuseRunning is the error that the agent, ovn-controller, or a database that is to be removed, runs on this machine.
// One that does not answer may only be busy: then it runs.
func (n Node) refuseRunning(ctx context.Context) error {
	var errs []error
	if listens(n.socket()) {
		errs = append(errs, fmt.Errorf("the node agent runs, and listens on %s: stop it first, for example with "+
			"`systemctl disable --now ovnkube-node`", n.socket()))
	}
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	if _, err := ovs.Appctl(ctx, n.OVNRunDir, "ovn-controller", "version"); !protocol.IsAbsent(err) {
		errs = append(errs, fmt.Errorf("ovn-controller runs, with its socket in %s: stop it first, for example with "+
			"`systemctl disable --now ovn-controller`", n.OVNRunDir))
	}
	for _, d := range databases() {
		if socket := filepath.Join(n.OVNRunDir, d+".sock"); n.DatabaseDir != "" && listens(socket) {
			errs = append(errs, fmt.Errorf("a database runs, and listens on %s: stop it first", socket))
		}
	}
	return errors.Join(errs...)
}

// databases are the names of OVN's databases in their files and sockets (ovn-ctl(8)).
func databases() []string { return []string{"ovnnb_db", "ovnsb_db"} }

// listens tells whether a program listens on a socket.
func listens(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		c.Close()
	}
	return !protocol.IsAbsent(err)
}

func (n Node) socket() string { return config.Node{CNISocketDir: n.CNISocketDir}.CNISocket() }

func (n Node) open(ctx context.Context) (*ovs.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	db, err := ovs.Open(ctx, n.OVSAddress, n.Log)
	if err != nil {
		return nil, fmt.Errorf("%w: is Open vSwitch running on this machine?", err)
	}
	return db, nil
}

// refusePods is the error that pods have ports in br-int, whose interface is still there.
func (n Node) refusePods(db *ovs.DB, kernel *hostnet.Netlink) error {
	links, err := kernel.LinkNames()
	if err != nil {
		return err
	}
	var pods []string
	for name, port := range db.PodPorts() {
		if links[name] {
			pods = append(pods, port)
		}
	}
	if len(pods) == 0 || n.CutOffPods {
		return nil
	}
	slices.Sort(pods)
	return fmt.Errorf("pods on this node would lose their network, and the runtime could not end them: %s: drain the "+
		"node, remove pods of DaemonSets, or give --cut-off-pods", strings.Join(pods, ", "))
}

// configuration removes the CNI configuration.
func (n Node) configuration() ([]step, error) {
	return removeAll(filepath.Join(n.CNIConfDir, names.CNIConfFile))
}

// files removes the plugin and its link, what the agent has in its runtime directory, and what the chart keeps on the
// machine.
func (n Node) files() ([]step, error) {
	all := []string{filepath.Join(n.CNIBinDir, names.CNIPlugin), filepath.Join(n.CNIBinDir, names.OverlayPlugin),
		n.socket(), filepath.Join(n.CNISocketDir, before.FileName), filepath.Join(n.StateDir, "certificates")}
	more, err := n.databaseFiles()
	if err != nil {
		return nil, err
	}
	if n.Bridge != "" { // its NIC is back, or this is not reached
		all = append(all, filepath.Join(n.StateDir, "nics"))
	}
	return removeAll(append(all, more...)...)
}

// databaseFiles lists the files of databases that are to be removed, such as ovnnb_db.db and .ovnnb_db.db.~lock~.
func (n Node) databaseFiles() (out []string, err error) {
	if n.DatabaseDir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(n.DatabaseDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for files of databases: %w", err)
	}
	for _, e := range entries {
		for _, d := range databases() {
			if strings.HasPrefix(strings.TrimPrefix(e.Name(), "."), d+".db") {
				out = append(out, filepath.Join(n.DatabaseDir, e.Name()))
			}
		}
	}
	return out, nil
}

// removeAll removes those of the files and directories that are there, and then the directories that they were in, if
// these are empty and Northbound's own.
func removeAll(paths ...string) (out []step, err error) {
	for _, p := range paths {
		_, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("looking for what to remove: %w", err)
		}
		out = append(out, step{"- " + p, func(context.Context) error {
			if err := os.RemoveAll(p); err != nil {
				return err
			}
			return removeEmpty(filepath.Dir(p))
		}})
	}
	return out, nil
}

// removeEmpty removes a directory in one of Northbound's own, and that one, unless they have something in them.
func removeEmpty(dir string) error {
	for up := dir; up != "/"; up = filepath.Dir(up) {
		if base := filepath.Base(up); base != "northbound" && base != "ovn-kubernetes" {
			continue
		}
		for d := dir; len(d) >= len(up); d = filepath.Dir(d) {
			switch err := os.Remove(d); {
			case errors.Is(err, fs.ErrExist), errors.Is(err, unix.EBUSY): // it isn't empty, or is a mount point
				return nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
	}
	return nil
}
