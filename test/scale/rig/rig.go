package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/test/sandbox/pki"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

const (
	startTimeout = 60 * time.Second // for a server to start, on a busy machine
	stopGrace    = 10 * time.Second
	pollInterval = 5 * time.Millisecond
)

// Programs are the paths of the programs of a Rig.
type Programs struct {
	APIServer string // sandbox-apiserver
	OVNKube   string // ovnkube
	Schema    string // the Northbound schema file, ovn-nb.ovsschema
}

// Check returns which of the programs is missing, and how to get it.
func (p Programs) Check() error {
	var errs []error
	for path, want := range map[string]string{
		p.APIServer: "run `make sandbox`",
		p.OVNKube:   "run `make build`",
		p.Schema:    "install ovn-common or name another with --nb-schema",
	} {
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s", err, want))
		}
	}
	return errors.Join(errs...)
}

// Rig is a running API server and a running Northbound database.
type Rig struct {
	Dir       string
	NB        *Northbound
	APIServer *process.Process
	Kube      kubernetes.Interface
	Metadata  metadata.Interface
	Objects   dynamic.Interface // of kinds that the API server may not know by itself
	// Within is the file that takes the process ids of masters that start from now on, as cgroup.procs does; "": none.
	Within string
	// Through, if not nil, is between the API server and the masters that start from now on.
	Through *Replay

	programs   Programs
	kubeconfig string
	admin      *rest.Config // of the kubeconfig
	apiFlags   []string
	databases  []*Northbound
	masters    int // started so far
}

// New starts a Rig, with more flags for the API server. After an error, nothing is left behind.
func New(ctx context.Context, p Programs, apiFlags ...string) (r *Rig, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "nbscale")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	r = &Rig{Dir: dir, programs: p, apiFlags: apiFlags, kubeconfig: filepath.Join(dir, "k8s", "admin.kubeconfig")}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := r.startAPIServer(); err != nil {
		return r, err
	}
	if r.NB, err = r.StartNorthbound(ctx, "nb"); err != nil {
		return r, err
	}
	return r, r.waitForAPIServer(ctx)
}

// Kubeconfig is the file of an administrator's credentials.
func (r *Rig) Kubeconfig() string { return r.kubeconfig }

// Close ends every process and removes every file.
func (r *Rig) Close() error {
	var errs []error
	for _, db := range r.databases {
		errs = append(errs, db.stop())
	}
	if r.APIServer != nil {
		// Its data is removed, so a clean shutdown is not needed.
		errs = append(errs, r.APIServer.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(r.Dir))...)
}

// apiServerURL is the URL of the API server in the network namespace of this program.
const apiServerURL = "https://127.0.0.1:6443"

func (r *Rig) startAPIServer() error {
	if err := identities(filepath.Join(r.Dir, "k8s"), r.kubeconfig); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	return r.runAPIServer()
}

// RestartAPIServer starts an API server that has ended again, with the same data. It returns when that is ready.
func (r *Rig) RestartAPIServer(ctx context.Context) error {
	if err := os.RemoveAll(r.readyFile()); err != nil {
		return fmt.Errorf("starting the API server again: %w", err)
	}
	if err := r.runAPIServer(); err != nil {
		return err
	}
	return r.waitUntilReady(ctx)
}

func (r *Rig) readyFile() string { return filepath.Join(r.Dir, "k8s", "ready") }

func (r *Rig) runAPIServer() (err error) {
	dir := filepath.Join(r.Dir, "k8s")
	r.APIServer, err = process.Start("the API server", filepath.Join(r.Dir, "apiserver.log"), r.programs.APIServer,
		append([]string{"--dir=" + dir, "--ready-file=" + r.readyFile(), "--controllers=",
			// It refuses a loopback address for the kubernetes service.
			"--apiserver-arg=--endpoint-reconciler-type=none"}, r.apiFlags...)...)
	return err
}

// identities writes the files that sandbox-apiserver needs.
func identities(dir, kubeconfig string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.New(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		ca.Server(dir, "apiserver", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, []string{"localhost"}),
		ca.Client(dir, "kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
		pki.Key(filepath.Join(dir, "sa.key")),
		ca.Kubeconfig(kubeconfig, apiServerURL, "admin", "system:masters"),
	)
}

func (r *Rig) waitUntilReady(ctx context.Context) error {
	return waitFor(ctx, r.APIServer, func() bool {
		_, err := os.Stat(r.readyFile())
		return err == nil
	})
}

func (r *Rig) waitForAPIServer(ctx context.Context) error {
	if err := r.waitUntilReady(ctx); err != nil {
		return err
	}
	rc, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		return fmt.Errorf("loading the API server's kubeconfig: %w", err)
	}
	rc.QPS, rc.WarningHandler = -1, rest.NoWarnings{} // tests make deprecated things on purpose
	r.admin = rest.CopyConfig(rc)
	meta := metadata.ConfigFor(r.admin)
	rc.ContentType = "application/vnd.kubernetes.protobuf"
	rc.AcceptContentTypes = rc.ContentType + ",application/json"
	if r.Kube, err = kubernetes.NewForConfig(rc); err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	if r.Metadata, err = metadata.NewForConfig(meta); err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	if r.Objects, err = dynamic.NewForConfig(r.admin); err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	return nil
}

// Northbound is one ovsdb-server with an OVN_Northbound database.
type Northbound struct {
	*process.Process
	Socket string
	File   string
	Log    *ovsdbwire.Log
}

// Database is the name of the database in its schema.
const Database = "OVN_Northbound"

// StartNorthbound starts an ovsdb-server with an empty database. name distinguishes several.
func (r *Rig) StartNorthbound(ctx context.Context, name string) (*Northbound, error) {
	file := filepath.Join(r.Dir, name+".db")
	db := &Northbound{Socket: filepath.Join(r.Dir, name+".sock"), File: file}
	if err := r.EmptyNorthbound(ctx, db); err != nil {
		return nil, err
	}
	if err := r.RunNorthbound(ctx, db); err != nil {
		return nil, err
	}
	r.databases = append(r.databases, db)
	return db, nil
}

// EmptyNorthbound replaces the file of a database whose server does not run by one without rows.
func (r *Rig) EmptyNorthbound(ctx context.Context, db *Northbound) error {
	tool, err := process.Find("ovsdb-tool", "openvswitch-common")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(db.File); err != nil {
		return fmt.Errorf("removing a Northbound database: %w", err)
	}
	if out, err := exec.CommandContext(ctx, tool, "create", db.File, r.programs.Schema).CombinedOutput(); err != nil {
		return fmt.Errorf("creating a Northbound database: %w: %s", err, out)
	}
	return nil
}

// RunNorthbound starts the server of a database's file, which may be another than before. It returns when the server
// answers.
func (r *Rig) RunNorthbound(ctx context.Context, db *Northbound) (err error) {
	db.Log = ovsdbwire.OpenLog(db.File)
	server, err := process.Find("ovsdb-server", "openvswitch-common")
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(db.File, ".db")
	db.Process, err = process.Start("ovsdb-server", base+".log", server,
		"--no-chdir", "--unixctl="+base+".ctl", "--remote=punix:"+db.Socket, db.File)
	if err != nil {
		return err
	}
	return waitFor(ctx, db.Process, func() bool {
		c, err := ovsdbwire.Dial(db.Socket)
		return err == nil && c.Close() == nil
	})
}

// ReplaceNorthbound stops the database and starts an empty one in its place. Masters must be stopped before.
func (r *Rig) ReplaceNorthbound(ctx context.Context, name string) (err error) {
	if err := r.NB.stop(); err != nil {
		return err
	}
	r.NB, err = r.StartNorthbound(ctx, name)
	return err
}

// StopNorthbound stops a server.
func (r *Rig) StopNorthbound(db *Northbound) error { return db.stop() }

func (n *Northbound) stop() error {
	select {
	case <-n.Done():
		return nil
	default:
		return n.Stop(stopGrace)
	}
}

// waitFor waits until ready returns true. It is an error if the process ends before, or if that takes longer than
// startTimeout.
func waitFor(ctx context.Context, p *process.Process, ready func() bool) error {
	return waitWithin(ctx, startTimeout, p, ready)
}

// waitWithin is waitFor with another limit.
func waitWithin(ctx context.Context, limit time.Duration, p *process.Process, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !ready() {
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended: %s", p.Name, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %s", p.Name, ctx.Err(), p.Tail())
		case <-tick.C:
		}
	}
	return nil
}
