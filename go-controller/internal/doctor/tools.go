package doctor

import (
	"context"
	"crypto/tls"
	"errors"
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
	// Ask and Schema read OVSDB servers: ovs.Ask and ovs.AskSchema.
	Ask    func(ctx context.Context, remote string, keys *tls.Config, db string, s ...ovs.Select) ([][]ovs.Row, error)
	Schema func(ctx context.Context, remote string, keys *tls.Config, database string) (ovs.Schema, error)
	// Explain is ovs.ExplainBinding.
	Explain func(ctx context.Context, remote string, keys *tls.Config, logicalPort, systemID string) (string, error)
	// Appctl asks a daemon on its control socket: ovs.Appctl.
	Appctl func(ctx context.Context, runDir, daemon, command string, args ...string) (string, error)
	// Ping is ping.Send.
	Ping   func(ctx context.Context, from, to netip.Addr, size int) error
	Kernel Kernel
	API    API
	// Find looks for an external bridge in the Open vSwitch whose database is at address: extbridge.Find.
	Find func(ctx context.Context, address string, q extbridge.Query) (*hostplan.External, error)
}

// Kernel is the host's network; hostnet.Netlink is one.
type Kernel interface {
	hostfacts.Kernel
	Read(want []hostplan.Item) ([]hostplan.Item, error)
	PathTo(from, to netip.Addr) (hostnet.Path, bool, error)
	HasFamily(name string) (bool, error)
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

// Real are the tools for this host, until closed.
func Real(k config.Kubernetes) (t Tools, closed func(), err error) {
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return Tools{}, nil, err
	}
	find := func(ctx context.Context, address string, q extbridge.Query) (*hostplan.External, error) {
		db, err := ovs.Open(ctx, address, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		defer db.Close()
		return extbridge.Find(db, kernel, q)
	}
	return Tools{
		Ask: ovs.Ask, Schema: ovs.AskSchema, Explain: ovs.ExplainBinding, Appctl: ovs.Appctl, Ping: ping.Send,
		Kernel: kernel, API: api{k}, Find: find,
	}, kernel.Close, nil
}

// maxAnswer bounds what is read of an answer of /readyz.
const maxAnswer = 4096

// ready asks a daemon's /readyz. The error is nil when the daemon is ready, else what it says. answers is false when no
// daemon answers.
func ready(ctx context.Context, address string) (answers bool, err error) {
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
		err = errors.New(strings.TrimSpace(string(body)))
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
