package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

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
	if err := printVisits(c, nodes, visits, formatOf(options)); err != nil {
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
	remote.Each(len(nodes), func(i int) {
		v := &visited{}
		out[i] = v
		at := slices.IndexFunc(servers, func(x remote.Server) bool { return x.Node == nodes[i] })
		if at < 0 {
			v.err = fmt.Errorf("%w on node %q: `kubectl northbound status` says why", remote.ErrNoServer, nodes[i])
			return
		}
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		v.exit, v.err = s.Run(ctx, servers[at], tool(diagnostics.Node, "doctor"), options, &v.stdout, &v.stderr)
	})
	return out
}

// formatOf is the format that the doctor's options ask for, "" for the default.
func formatOf(options []string) string {
	for i, o := range options {
		if format, is := strings.CutPrefix(o, "--output="); is {
			return format
		}
		if o == "-o" && i+1 < len(options) {
			return options[i+1]
		}
	}
	return ""
}

// printVisits prints what the doctors said, one after the other. Of several nodes, JSON and YAML are one object, with
// the nodes as keys.
func printVisits(c *cli.Context, nodes []string, visits []*visited, format string) error {
	for _, v := range visits {
		fmt.Fprint(c.App.ErrWriter, v.stderr.String())
	}
	if len(nodes) > 1 && (format == "json" || format == "yaml") {
		return printTogether(c, nodes, visits, format)
	}
	for i, v := range visits {
		if len(nodes) > 1 {
			fmt.Fprintf(c.App.Writer, "== %s\n", nodes[i])
		}
		fmt.Fprint(c.App.Writer, v.stdout.String())
	}
	return nil
}

// printTogether prints one object with the nodes as keys. A node's doctor that failed has an error instead.
func printTogether(c *cli.Context, nodes []string, visits []*visited, format string) error {
	all := map[string]any{}
	for i, v := range visits {
		var said any
		err := v.err
		if err == nil {
			err = yaml.Unmarshal(v.stdout.Bytes(), &said) // JSON is YAML
		}
		if all[nodes[i]] = said; err != nil {
			all[nodes[i]] = map[string]string{"error": err.Error()}
		}
	}
	write := asJSON[map[string]any]
	if format == "yaml" {
		write = asYAML[map[string]any]
	}
	if err := write(c.App.Writer, all); err != nil {
		return fmt.Errorf("writing the diagnoses: %w", err)
	}
	return nil
}
