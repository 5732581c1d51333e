package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// atOnce is how many nodes are asked at the same time.
const atOnce = 16

// doctorTimeout limits how long a node's doctor may take: each of its checks has a timeout of its own.
const doctorTimeout = 3 * time.Minute

// runDoctor asks the doctors of the nodes that are named, or of all.
func runDoctor(c *cli.Context) error {
	var nodes, options []string
	for _, a := range c.Args().Slice() {
		switch {
		case a == "--all":
		case strings.HasPrefix(a, "-") || len(options) > 0 && options[len(options)-1] == "-o":
			options = append(options, a)
		default:
			nodes = append(nodes, a)
		}
	}
	for _, o := range options {
		if strings.HasPrefix(o, "--") && !strings.Contains(o, "=") {
			return fmt.Errorf("doctor: option %s: want %s=VALUE", o, o)
		}
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	servers, err := s.Servers(c.Context, diagnostics.Node)
	if err != nil {
		return err
	}
	if len(nodes) == 0 { // also those whose server does not run
		if nodes, err = s.Nodes(c.Context, diagnostics.Node); err != nil {
			return err
		}
	}
	if len(nodes) == 0 {
		return fmt.Errorf("%w: no node has one in namespace %s", remote.ErrNoServer, s.Namespace)
	}
	visits := visit(c.Context, s, servers, nodes, options)
	worst := 0
	var failed error
	for i, v := range visits {
		if v.err == nil && v.exit != 0 && v.exit != exitProblems {
			v.err = fmt.Errorf("node %s: the doctor ended with exit code %d", nodes[i], v.exit)
		}
		failed = errors.Join(failed, v.err)
		worst = max(worst, v.exit)
	}
	if err := printVisits(c, nodes, visits, isJSON(options)); err != nil {
		return err
	}
	if failed == nil && worst != 0 {
		return cli.Exit("", worst)
	}
	return failed
}

// visited is what the doctor of a node said.
type visited struct {
	stdout, stderr bytes.Buffer
	exit           int
	err            error
}

// visit asks the doctors of nodes, some at the same time.
func visit(ctx context.Context, s *remote.Session, servers []remote.Server, nodes, options []string) []*visited {
	out := make([]*visited, len(nodes))
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, node := range nodes {
		out[i] = &visited{}
		at := slices.IndexFunc(servers, func(x remote.Server) bool { return x.Node == node })
		if at < 0 {
			out[i].err = fmt.Errorf("%w on node %q: `kubectl northbound status` says why", remote.ErrNoServer, node)
			continue
		}
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
			defer cancel()
			v := out[i]
			v.exit, v.err = s.Run(ctx, servers[at], tool(diagnostics.Node, "doctor"), options, &v.stdout, &v.stderr)
		})
	}
	running.Wait()
	return out
}

// isJSON tells whether the doctor's options ask for JSON.
func isJSON(options []string) bool {
	at := slices.Index(options, "-o")
	return slices.Contains(options, "--output=json") || at >= 0 && at+1 < len(options) && options[at+1] == "json"
}

// printVisits prints what the doctors said, one after the other. Of several nodes, JSON is one object with the nodes as
// keys.
func printVisits(c *cli.Context, nodes []string, visits []*visited, asJSON bool) error {
	if asJSON && len(nodes) > 1 {
		all := map[string]any{}
		for i, v := range visits {
			all[nodes[i]] = json.RawMessage(v.stdout.Bytes())
			if v.err != nil {
				all[nodes[i]] = map[string]string{"error": v.err.Error()}
			}
		}
		for _, v := range visits {
			fmt.Fprint(c.App.ErrWriter, v.stderr.String())
		}
		e := json.NewEncoder(c.App.Writer)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return fmt.Errorf("writing the diagnoses: %w", err)
		}
		return nil
	}
	for i, v := range visits {
		if len(nodes) > 1 {
			fmt.Fprintf(c.App.Writer, "== %s\n", nodes[i])
		}
		fmt.Fprint(c.App.Writer, v.stdout.String())
		fmt.Fprint(c.App.ErrWriter, v.stderr.String())
	}
	return nil
}
