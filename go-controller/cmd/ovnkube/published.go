package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
)

// How long one attempt to read the published settings may take, and how long an agent waits for the next.
const (
	readPublishedWithin = 5 * time.Second
	readPublishedAgain  = 2 * time.Second
)

// published reads the settings that the master has published. It tries once.
func published(ctx context.Context, k config.Kubernetes) (config.Settings, error) {
	clients, err := client.New(k, "ovnkube")
	if err != nil {
		return nil, err
	}
	return readPublished(ctx, clients)
}

func readPublished(ctx context.Context, clients *client.Clients) (config.Settings, error) {
	ctx, cancel := context.WithTimeout(ctx, readPublishedWithin)
	defer cancel()
	return settings.Read(ctx, clients.Kube)
}

// awaitPublished reads the settings that the master has published. An agent with --cluster-subnets works without them.
// Any other waits for them until the context ends.
func awaitPublished(c *cli.Context, k config.Kubernetes, log *slog.Logger) (config.Settings, error) {
	clients, err := client.New(k, "ovnkube-node")
	if err != nil {
		return nil, err
	}
	for logged := ""; ; {
		found, err := readPublished(c.Context, clients)
		if err == nil {
			return found, nil
		}
		if c.IsSet("cluster-subnets") {
			log.Warn("cannot compare the flags with the master's settings", "error", err)
			return nil, nil
		}
		if err.Error() != logged {
			logged = err.Error()
			log.Warn("waiting for the master's settings, since --cluster-subnets is not given", "error", err)
		}
		select {
		case <-c.Done():
			return nil, fmt.Errorf("waiting for the master's settings: %w", c.Err())
		case <-time.After(readPublishedAgain):
		}
	}
}

// adopt sets the flags that are unset from published settings. known are the settings that the command has flags for.
func adopt(c *cli.Context, found, known config.Settings) error {
	_, err := fill(c, func(s setting) (value, place string, err error) {
		if _, ok := known[s.flag]; ok {
			value = found[s.flag]
		}
		return value, settings.Where, nil
	}, true)
	return err
}

// agentSettings reads nodeFlags. Those that are not given come from the published settings. Those that are given must
// agree with them.
func agentSettings(c *cli.Context, found config.Settings) (config.Node, error) {
	if err := adopt(c, found, config.Node{}.Settings()); err != nil {
		return config.Node{}, err
	}
	n, err := nodeSettings(c)
	if err != nil {
		return n, err
	}
	return n, n.Settings().Agree(found, settings.Where)
}

// runningMaster is masterConfig of a command that looks at a running cluster: what its flags do not give comes from the
// published settings, if they can be read. With manifests no API server is asked. `ovnkube master --dry-run` takes its
// own flags alone, since it says what they would change.
func runningMaster(c *cli.Context, log *slog.Logger) (config.Master, error) {
	if len(c.StringSlice("filename")) > 0 || hasFlag(c.Command, "dry-run") {
		return masterConfig(c)
	}
	found, err := published(c.Context, kubernetesConfig(c))
	if err != nil {
		log.Debug("the published settings cannot be read", "error", err)
	}
	given := config.DefaultCluster()
	given.RouterNamed = true
	if err := adopt(c, found, given.Settings()); err != nil {
		return config.Master{}, err
	}
	return masterConfig(c)
}
