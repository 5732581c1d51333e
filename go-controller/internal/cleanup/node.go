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

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// Node is a machine to clean up.
type Node struct {
	OVSAddress     string        // unix:PATH
	OVNRunDir      string        // of ovn-controller's control socket
	CNIConfDir     string        // of the runtime's network configurations
	CNIBinDir      string        // of the runtime's plugins
	CNISocketDir   string        // of the agent's socket
	StateDir       string        // has the directories of certificates and databases
	OpenvSwitchDir string        // of Open vSwitch's system-id.conf
	CutOffPods     bool          // go on although pods have ports in br-int
	DryRun         bool          // only print
	Timeout        time.Duration // how long to wait for Open vSwitch
	Out            io.Writer     // gets a line for each change
	Log            *slog.Logger
}

// step is one change, and how ip(8), ovs-vsctl(8) and others would show it.
type step struct {
	line string
	do   func(context.Context) error
}

// Run cleans up, prints what it changes, and goes on after a failure. It changes nothing while the agent or
// ovn-controller runs, since they would put everything back, and while there are pods, unless CutOffPods.
func (n Node) Run(ctx context.Context) error {
	if err := n.refuseRunning(ctx); err != nil {
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
	var errs []error
	changed := false
	// Each group is read when those before it are done: a bridge that goes takes routes along.
	for _, group := range []func() ([]step, error){
		n.configuration, // so that the runtime starts no pod
		func() ([]step, error) { return n.openVSwitch(db) },
		func() ([]step, error) { return n.kernel(kernel) },
		func() ([]step, error) { return n.systemID(db) },
		n.files,
	} {
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
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if !changed {
		fmt.Fprintln(n.Out, "Nothing to clean up.")
	}
	return nil
}

// refuseRunning is the error that the agent or ovn-controller runs on this machine.
func (n Node) refuseRunning(ctx context.Context) error {
	var errs []error
	if c, err := net.DialTimeout("unix", n.socket(), time.Second); err == nil {
		errs = append(errs, fmt.Errorf("the node agent runs, and listens on %s: stop it first, for example with "+
			"`systemctl disable --now ovnkube-node`", n.socket()), c.Close())
	}
	if _, err := ovs.Appctl(ctx, n.OVNRunDir, "ovn-controller", "version"); err == nil {
		errs = append(errs, fmt.Errorf("ovn-controller runs, with its socket in %s: stop it first, for example with "+
			"`systemctl disable --now ovn-controller`", n.OVNRunDir))
	}
	return errors.Join(errs...)
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

// files removes the plugin, the agent's runtime directory, and what the chart keeps on the machine.
func (n Node) files() ([]step, error) {
	return removeAll(filepath.Join(n.CNIBinDir, names.CNIPlugin), n.CNISocketDir,
		filepath.Join(n.StateDir, "certificates"), filepath.Join(n.StateDir, "ovn"))
}

// removeAll removes those of the files and directories that are there, and then their directory if it is empty and
// Northbound's own.
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
			if dir := filepath.Dir(p); slices.Contains([]string{"northbound", "ovn-kubernetes"}, filepath.Base(dir)) {
				if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrExist) { // it isn't empty
					return err
				}
			}
			return nil
		}})
	}
	return out, nil
}
