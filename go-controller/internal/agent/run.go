package agent

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/health"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/limits"
	"github.com/northbound-net/northbound/go-controller/internal/version"
)

// component is the agent's name in the API server's logs.
const component = "ovnkube-node"

// Run is the whole daemon. It works until ctx ends, and waits for servers that do not
// answer yet. It returns an error only when it can't start at all.
func Run(ctx context.Context, c config.Node, log *slog.Logger) error {
	clients, err := client.New(c.Kubernetes, component)
	if err != nil {
		return err
	}
	kube, err := local.New(clients, kinds.All(), c.Name, log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a, err := New(c, kube, registry, log)
	if err != nil {
		return err
	}
	web, err := a.listen(c.Metrics, registry)
	if err != nil {
		return err
	}
	log.Info("node agent started", "version", version.Get().Version, "node", c.Name, "metrics", web.Addr(),
		"ovs", c.OVSAddress, "kubernetes", clients.Server)
	defer log.Info("node agent stopped", "node", c.Name)
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	serving.Go(func() { limits.Keep(ctx, log) })
	serving.Go(func() { web.Run(ctx) })
	return a.Run(ctx)
}

// listen opens the address at which the agent's metrics, /healthz and /readyz are.
func (a *Agent) listen(address string, metrics prometheus.Gatherer) (*health.Server, error) {
	return health.Listen(address, metrics, health.Probes{Alive: a.Alive, Ready: a.Ready}, a.log)
}
