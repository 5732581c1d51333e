package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
)

// How long one attempt to read the published settings may take, and how long an agent waits for the next while it needs
// them. Later it looks from time to time whether they have changed; up to twice as long, at random, so that not all
// agents come at once.
const (
	readPublishedWithin = 5 * time.Second
	readPublishedAgain  = 2 * time.Second
	lookForChanges      = 20 * time.Second
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
	found, err := settings.Read(ctx, clients.Kube)
	if err == nil && found["cluster-subnets"] == "" {
		return nil, errors.New(settings.Where + " has no cluster-subnets: want what the master has published")
	}
	return found, err
}

// awaitPublished reads the settings that the master has published. An agent with --cluster-subnets works without them.
// Any other waits for them until the context ends.
func awaitPublished(c *cli.Context, clients *client.Clients, log *slog.Logger) (config.Settings, error) {
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

// errOutdated says that an agent must start again, with the settings that the master has now.
var errOutdated = errors.New("the master's settings have changed")

// follower notices that the published settings have changed since an agent has started.
type follower struct {
	own    config.Settings // what the agent runs with
	before config.Settings // what was published when it started
	given  func(flag string) bool
	read   func(context.Context) (config.Settings, error)
	log    *slog.Logger
}

// run returns an error that is errOutdated once the agent runs with settings that the master has changed. While they
// contradict a flag, or are wrong, it only logs that: a new start would fail. It returns nil when ctx ends.
func (f follower) run(ctx context.Context, again time.Duration) error {
	logged := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again + rand.N(again)):
		}
		now, err := f.read(ctx)
		if err != nil {
			f.log.Debug("the published settings cannot be read", "error", err)
			continue
		}
		outdated, contradicting := f.own.Outdated(f.before, now, f.given)
		text := differences(f.own, now, append(contradicting, outdated...))
		err = now.Validate()
		switch {
		case len(outdated) > 0 && len(contradicting) == 0 && err == nil:
			return fmt.Errorf("%w: %s", errOutdated, text)
		case text == logged || text == "":
		case err != nil:
			f.log.Error("the master's settings have changed to wrong ones: the agent goes on with the old", "error", err)
		default:
			f.log.Error("flags contradict the master's settings: the agent goes on, but will not start again like this", "flags",
				text)
		}
		logged = text
	}
}

// differences says which values the flags have here, and which the master publishes.
func differences(own, now config.Settings, flags []string) string {
	var out []string
	for _, flag := range flags {
		out = append(out, fmt.Sprintf("--%s is %q, the master has %q", flag, own[flag], now[flag]))
	}
	return strings.Join(out, "; ")
}

// runningMaster is masterConfig of a command that looks at a running cluster: what its flags do not give comes from the
// published settings, if they can be read. With manifests no API server is asked. `ovnkube master --dry-run` takes its
// own flags alone, since it says what they would change.
func runningMaster(c *cli.Context, log *slog.Logger) (config.Master, error) {
	if hasFlag(c.Command, "dry-run") {
		return masterConfig(c)
	}
	if len(c.StringSlice("filename")) > 0 {
		if err := adoptManifests(c, c.StringSlice("filename")); err != nil {
			return config.Master{}, err
		}
		return masterConfig(c)
	}
	if err := adoptPublished(c, log); err != nil {
		return config.Master{}, err
	}
	return masterConfig(c)
}

// adoptPublished sets the flags that are unset from the published settings, if these can be read.
func adoptPublished(c *cli.Context, log *slog.Logger) error {
	found, err := published(c.Context, kubernetesConfig(c))
	if err != nil {
		log.Debug("the published settings cannot be read", "error", err)
	}
	return adopt(c, found, clusterSettings())
}

// clusterSettings has every setting of a cluster that commands have flags for.
func clusterSettings() config.Settings {
	c := config.DefaultCluster()
	c.RouterNamed = true
	return c.Settings()
}
