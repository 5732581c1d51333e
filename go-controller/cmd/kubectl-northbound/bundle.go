package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/bundle"
	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
	"github.com/northbound-net/northbound/go-controller/internal/version"
)

const (
	logBytes    = 8 << 20 // of the end of each container's log
	partTimeout = 5 * time.Minute
)

func bundleCommand() *cli.Command {
	return &cli.Command{
		Name:      "bundle",
		Usage:     "collect in one file what explains the state of the network: objects, databases, flows, logs, versions",
		UsageText: "kubectl northbound [FLAGS] bundle [OPTIONS] [NODE ...]", HideHelpCommand: true,
		Description: "Without nodes, all of them. Environment variables, Secrets and tokens are never in the file. " +
			"Names, labels and addresses of pods and services are.\n\n" +
			"`ovnkube translate -f FILE` prints the Northbound database that the master would make of the objects.\n" +
			"`ovnkube plan -f FILE` prints how the captured database differed.\n\n" +
			"Exit code 0: all was collected; 2: some was not, as errors.txt in the file says; 1: there is no file.\n\n" +
			"Examples:\n   kubectl northbound bundle\n   kubectl northbound bundle -o incident.tgz n1 n2",
		Flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE`.tgz to write",
			DefaultText: "northbound-TIME.tgz"}},
		Action: runBundle,
	}
}

func runBundle(c *cli.Context) (err error) {
	now := time.Now()
	file := c.String("output")
	if file == "" {
		file = "northbound-" + now.UTC().Format("20060102-150405") + ".tgz"
	}
	if !bundle.Is(file) {
		return fmt.Errorf("--output %q: want a name that ends in .tgz", file)
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	parts, err := partsOf(c.Context, s, c.Args().Slice())
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".northbound-*.tgz") // only the user may read it
	if err != nil {
		return fmt.Errorf("making the bundle: %w", err)
	}
	b := &collector{out: bundle.NewWriter(f, now), progress: c.App.ErrWriter}
	err = errors.Join(b.collect(c.Context, parts), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making the bundle: %w", err), os.Remove(f.Name()))
	}
	fmt.Fprintf(c.App.Writer, "%s: %d files, %d could not be collected\n", file, b.files, len(b.missing))
	if len(b.missing) > 0 {
		return cli.Exit("", exitProblems)
	}
	return nil
}

// part is a file of the bundle, and how it is collected.
type part struct {
	name    string
	from    string // the server that is asked; "" for the API server. One part of each is collected at a time
	collect func(ctx context.Context, w io.Writer) error
}

// collector fills a bundle with some parts at a time.
type collector struct {
	mutex    sync.Mutex
	out      *bundle.Writer
	progress io.Writer
	files    int
	missing  []string
	err      error
}

func (b *collector) collect(ctx context.Context, parts []part) error {
	byServer := map[string][]part{}
	for _, p := range parts {
		byServer[p.from] = append(byServer[p.from], p)
	}
	servers := slices.Collect(maps.Values(byServer))
	remote.Each(len(servers), func(i int) {
		for _, p := range servers[i] {
			b.one(ctx, p)
		}
	})
	slices.Sort(b.missing)
	text := "Everything was collected.\n"
	if len(b.missing) > 0 {
		text = strings.Join(b.missing, "\n") + "\n"
	}
	return errors.Join(b.err, ctx.Err(), b.out.Add(bundle.Errors, []byte(text)), b.out.Close())
}

// one collects a part.
func (b *collector) one(ctx context.Context, p part) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	var content bytes.Buffer
	err := p.collect(ctx, &content)
	b.add(p.name, err, content.Bytes())
}

// add adds what was collected. A part that failed is added as far as it came.
func (b *collector) add(name string, failure error, content []byte) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if failure != nil {
		b.missing = append(b.missing, name+": "+failure.Error())
		fmt.Fprintf(b.progress, "%s: %v\n", name, failure)
	}
	if b.err == nil && (failure == nil || len(content) > 0) {
		b.files++
		b.err = b.out.Add(name, content)
	}
}

// partsOf lists what is collected of the control plane and of these nodes, or of all.
func partsOf(ctx context.Context, s *remote.Session, nodes []string) (out []part, err error) {
	for _, n := range nodes {
		if strings.HasPrefix(n, "-") {
			return nil, fmt.Errorf("bundle: %q: flags precede the nodes", n)
		}
	}
	out = []part{
		{"version.txt", "", func(_ context.Context, w io.Writer) error {
			_, err := fmt.Fprintln(w,
				version.Get())
			return err
		}},
		{"status.json", "", func(ctx context.Context, w io.Writer) error {
			all, err := s.Status(ctx)
			return errors.Join(err, asJSON(w, all))
		}},
	}
	out = append(out, anywhere(s, diagnostics.Master, bundle.Objects, "objects"),
		anywhere(s, diagnostics.Master, "plan.txt", "plan"),
		anywhere(s, diagnostics.Database, bundle.Northbound, "backup", "nb", "OVN_Northbound"),
		anywhere(s, diagnostics.Database, bundle.Southbound, "backup", "sb", "OVN_Southbound"))
	for place, partsOn := range map[diagnostics.Place]func(s *remote.Session, node string) []part{
		diagnostics.Database: databaseParts, diagnostics.Node: nodeParts,
	} {
		on, err := s.Nodes(ctx, place)
		if err != nil {
			return nil, err
		}
		if place == diagnostics.Node && len(nodes) > 0 {
			on = nodes
		}
		for _, n := range on {
			out = append(out, partsOn(s, n)...)
		}
	}
	logs, err := s.Logs(ctx)
	for _, l := range logs {
		if l.App == diagnostics.Node.App() && len(nodes) > 0 && !slices.Contains(nodes, l.Node) {
			continue
		}
		name := "logs/" + l.Pod + "/" + l.Container
		if l.Previous {
			name += ".previous"
		}
		out = append(out, part{name + ".log", "log/" + l.Pod, func(ctx context.Context, w io.Writer) error {
			text, err := s.ReadLog(ctx, l, logBytes)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}})
	}
	return out, err
}

func databaseParts(s *remote.Session, node string) []part {
	in, at := "databases/"+node+"/", diagnostics.Database
	return []part{
		tooled(s, at, node, in+"nb-cluster.txt", "database", "nb", "cluster/status", "OVN_Northbound"),
		tooled(s, at, node, in+"sb-cluster.txt", "database", "sb", "cluster/status", "OVN_Southbound"),
		tooled(s, at, node, in+"disk-space.txt", "disk", "space"),
		tooled(s, at, node, in+"northd.txt", "database", "northd", "status"),
		tooled(s, at, node, in+"northd-times.txt", "database", "northd", "stopwatch/show"),
	}
}

func nodeParts(s *remote.Session, node string) []part {
	in, at := "nodes/"+node+"/", diagnostics.Node
	return []part{
		tooled(s, at, node, in+"doctor.txt", "doctor"),
		tooled(s, at, node, in+"doctor.json", "doctor", "-o", "json"),
		tooled(s, at, node, in+"ovs.txt", "vsctl", "show"),
		tooled(s, at, node, in+"ovs-settings.txt", "vsctl", "list", "Open_vSwitch"),
		tooled(s, at, node, in+"ovs-interfaces.txt", "vsctl", "list", "Interface"),
		tooled(s, at, node, in+"br-int-flows.txt", "ofctl", "dump-flows", "br-int"),
		tooled(s, at, node, in+"br-int-groups.txt", "ofctl", "-O", "OpenFlow15", "dump-groups", "br-int"),
		tooled(s, at, node, in+"datapath-flows.txt", "appctl", "ovs-vswitchd", "dpctl/dump-flows", "-m"),
		tooled(s, at, node, in+"datapath.txt", "appctl", "ovs-vswitchd", "dpif/show"),
		tooled(s, at, node, in+"ovn-controller.txt", "appctl", "ovn-controller", "connection-status"),
		tooled(s, at, node, in+"ovn-controller-zones.txt", "appctl", "ovn-controller", "ct-zone-list"),
		tooled(s, at, node, in+"ovn-controller-times.txt", "appctl", "ovn-controller", "stopwatch/show"),
		tooled(s, at, node, in+"addresses.txt", "ip", "-d", "address", "show"),
		tooled(s, at, node, in+"routes.txt", "ip", "route", "show", "table", "all"),
		tooled(s, at, node, in+"routes-ipv6.txt", "ip", "-6", "route", "show", "table", "all"),
		tooled(s, at, node, in+"rules.txt", "ip", "rule", "show"),
		tooled(s, at, node, in+"neighbours.txt", "ip", "neighbour", "show"),
	}
}

// anywhere is a file with the output of a tool of the control plane, from whichever node has a server.
func anywhere(s *remote.Session, at diagnostics.Place, name, of string, args ...string) part {
	return tooled(s, at, "", name, of, args...)
}

// tooled is a file with the output of a tool. Doctor and plan exit with 2 when they find something. A node without a
// server is an error of the part.
func tooled(s *remote.Session, at diagnostics.Place, node, name, of string, args ...string) part {
	return part{name, string(at) + "/" + node, func(ctx context.Context, w io.Writer) error {
		to, err := s.OnNode(ctx, at, node)
		if err != nil {
			return err
		}
		var messages bytes.Buffer
		exit, err := s.Run(ctx, to, tool(at, of), args, w, &messages)
		if err != nil {
			return err
		}
		found := exit == exitProblems && (of == "doctor" || of == "plan")
		if exit != 0 && !found {
			return fmt.Errorf("exit code %d: %s", exit, strings.TrimSpace(messages.String()))
		}
		return nil
	}}
}
