package master

import (
	"context"
	"slices"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
)

// How long an attempt to publish the settings may take, and how long it takes until the next.
const (
	publishWithin = 10 * time.Second
	publishAgain  = 5 * time.Second
)

// publish shares the settings with the agents. It repeats failed attempts until ctx ends.
func (m *master) publish(ctx context.Context) {
	failure := ""
	again := time.NewTicker(publishAgain)
	defer again.Stop()
	for {
		changed, err := m.publishOnce(ctx)
		taken := config.DefaultNode().Settings() // others shape the logical network alone
		changed = slices.DeleteFunc(changed, func(flag string) bool { _, is := taken[flag]; return !is })
		switch {
		case err == nil && len(changed) > 0:
			m.log.Warn("the cluster's settings have changed: agents that have them from the master start again", "flags",
				changed)
			return
		case err == nil:
			return
		case err.Error() != failure && ctx.Err() == nil:
			failure = err.Error()
			m.log.Error("cannot publish the cluster's settings: agents that lack them wait", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func (m *master) publishOnce(ctx context.Context) ([]string, error) {
	if err := m.leader.Holds(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishWithin)
	defer cancel()
	return settings.Publish(ctx, m.clients.Kube, m.config.Cluster.Settings())
}
