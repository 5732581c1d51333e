package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/extbridge"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	kubekinds "github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/ping"
)

// Tools are the doctor's sources. None of them changes anything.
type Tools struct {
	Databases Databases
	Daemons   Daemons
	Kernel    Kernel
	Pinger    Pinger
	API       API
	Bridges   Bridges
}

// Databases reads OVSDB servers; see ovs.Ask and ovs.AskSchema.
type Databases interface {
	Ask(ctx context.Context, remote string, keys *tls.Config, database string, selects ...ovs.Select) ([][]ovs.Row, error)
	Schema(ctx context.Context, remote string, keys *tls.Config, database string) (ovs.Schema, error)
	// Explain is ovs.ExplainBinding.
	Explain(ctx context.Context, remote string, keys *tls.Config, logicalPort, systemID string) (string, error)
}

// Daemons asks the node's running programs.
type Daemons interface {
	// Appctl is ovs.Appctl.
	Appctl(ctx context.Context, runDir, daemon, command string, args ...string) (string, error)
	// Ready asks a daemon's /readyz. It is nil when the daemon is ready, else what it
	// says. answers is false when no daemon answers.
	Ready(ctx context.Context, address string) (answers bool, err error)
}

// Kernel is the host's network; hostnet.Netlink is one.
type Kernel interface {
	hostfacts.Kernel
	Read(want []hostplan.Item) ([]hostplan.Item, error)
	PathTo(from, to netip.Addr) (hostnet.Path, bool, error)
	HasFamily(name string) (bool, error)
}

// Bridges looks at external bridges and their flows, of the Open vSwitch whose
// database is at address.
type Bridges interface {
	// Find is extbridge.Find.
	Find(ctx context.Context, address string, q extbridge.Query) (*hostplan.External, error)
	// Compare is ovs.Flows.Compare, and CatchAll is ovs.Flows.CatchAll.
	Compare(ctx context.Context, address string, want hostplan.Flows) (changes []ovs.Change, commands []string, err error)
	CatchAll(ctx context.Context, address, bridge string) (f hostplan.Flow, ok bool, err error)
}

// pinger is the real Pinger.
type pinger struct{}

// Ping implements Pinger.
func (pinger) Ping(ctx context.Context, from, to netip.Addr, size int) error {
	return ping.Send(ctx, from, to, size)
}

// Pinger sends ICMP echo requests that must not be fragmented.
type Pinger interface {
	// Ping sends requests of size bytes, IP header included, until one is
	// answered: nil. ping.ErrTooBig is the error of one that does not fit, and
	// ping.ErrNoAnswer of those that nobody answered.
	Ping(ctx context.Context, from, to netip.Addr, size int) error
}

// API asks the Kubernetes API server.
type API interface {
	Probe(ctx context.Context) (client.Answer, error)
	Node(ctx context.Context, name string) (n local.Node, ok bool, err error)
	// Served is what this node needs to know to serve services; see local.Watcher.Served.
	Served(ctx context.Context, node string, needy func(*cluster.Service) bool) (local.Served, error)
}

// component is how the doctor calls itself to the API server.
const component = "ovnkube-doctor"

// Real are the tools for this host. Close them.
func Real(k config.Kubernetes) (Tools, io.Closer, error) {
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return Tools{}, nil, err
	}
	return Tools{databases{}, daemons{}, kernel, pinger{}, api{k}, bridges{kernel}}, closer(kernel.Close), nil
}

type closer func()

// Close implements io.Closer.
func (c closer) Close() error {
	c()
	return nil
}

type databases struct{}

func (databases) Ask(
	ctx context.Context, remote string, keys *tls.Config, database string, selects ...ovs.Select,
) ([][]ovs.Row, error) {
	return ovs.Ask(ctx, remote, keys, database, selects...)
}

func (databases) Schema(ctx context.Context, remote string, keys *tls.Config, database string) (ovs.Schema, error) {
	return ovs.AskSchema(ctx, remote, keys, database)
}

func (databases) Explain(
	ctx context.Context, remote string, keys *tls.Config, logicalPort, systemID string,
) (string, error) {
	return ovs.ExplainBinding(ctx, remote, keys, logicalPort, systemID)
}

type bridges struct{ kernel extbridge.Kernel }

func (b bridges) Find(ctx context.Context, address string, q extbridge.Query) (*hostplan.External, error) {
	db, err := ovs.Open(ctx, address, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return extbridge.Find(db, b.kernel, q)
}

func (bridges) Compare(ctx context.Context, address string, want hostplan.Flows) ([]ovs.Change, []string, error) {
	return ovs.NewFlows(address).Compare(ctx, want)
}

func (bridges) CatchAll(ctx context.Context, address, bridge string) (hostplan.Flow, bool, error) {
	return ovs.NewFlows(address).CatchAll(ctx, bridge)
}

type daemons struct{}

func (daemons) Appctl(ctx context.Context, runDir, daemon, command string, args ...string) (string, error) {
	return ovs.Appctl(ctx, runDir, daemon, command, args...)
}

// maxAnswer bounds what is read of an answer of /readyz.
const maxAnswer = 4096

func (daemons) Ready(ctx context.Context, address string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false, fmt.Errorf("asking %s: %w", address, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", strings.TrimSpace(string(body)))
	}
	return true, err
}

type api struct{ config config.Kubernetes }

func (a api) Probe(ctx context.Context) (client.Answer, error) {
	return client.Probe(ctx, a.config, component)
}

func (a api) Node(ctx context.Context, name string) (local.Node, bool, error) {
	clients, err := client.New(a.config, component)
	if err != nil {
		return local.Node{}, false, err
	}
	return local.ReadNode(ctx, clients, name)
}

func (a api) Served(ctx context.Context, node string, needy func(*cluster.Service) bool) (local.Served, error) {
	clients, err := client.New(a.config, component)
	if err != nil {
		return local.Served{}, err
	}
	watcher, err := local.New(clients, kubekinds.All(), node, slog.New(slog.DiscardHandler))
	if err != nil {
		return local.Served{}, err
	}
	return watcher.Served(ctx, needy)
}
