package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// commands are a command for each tool, and those that are more than a tool.
func commands() []*cli.Command {
	out := []*cli.Command{statusCommand(), bundleCommand(), manCommand()}
	for _, t := range diagnostics.Tools() {
		out = append(out, toolCommand(t))
	}
	slices.SortFunc(out, func(a, b *cli.Command) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// special are the tools whose arguments this program reads itself.
func special() map[string]cli.ActionFunc {
	return map[string]cli.ActionFunc{"doctor": runDoctor, "tcpdump": runTcpdump, "explain": runExplain, "trace": runTrace}
}

func toolCommand(t diagnostics.Tool) *cli.Command {
	out := &cli.Command{
		Name: t.Name, Usage: t.Usage, Description: describe(t), HideHelpCommand: true, SkipFlagParsing: true,
		UsageText: strings.TrimSpace("kubectl northbound [FLAGS] " + t.Name + " " + argumentsOf(t)),
	}
	run := special()[t.Name]
	if run == nil {
		run = func(c *cli.Context) error { return runTool(c, t) }
	}
	out.Action = func(c *cli.Context) error {
		if a := c.Args().First(); a == "-h" || a == "--help" {
			return cli.ShowSubcommandHelp(c)
		}
		return run(c)
	}
	return out
}

func argumentsOf(t diagnostics.Tool) string {
	switch {
	case t.Name == "doctor":
		return "[NODE ...] [OPTIONS]"
	case t.Name == "tcpdump":
		return "[NAMESPACE/]POD [-w FILE] [OPTIONS] [EXPRESSION]"
	case t.Name == "explain":
		return "KIND/NAME|--row=UUID|--acl=LINE [OPTIONS]"
	case t.Name == "trace":
		return "[NAMESPACE/]POD DESTINATION[:PORT[/PROTOCOL]] [OPTIONS]"
	case t.Targets != nil && t.Place == diagnostics.Node:
		return "NODE DAEMON COMMAND [ARGUMENTS]"
	case t.Targets != nil && t.Commands == nil:
		return strings.Join(slices.Sorted(maps.Keys(t.Targets)), "|")
	case t.Targets != nil:
		return strings.Join(slices.Sorted(maps.Keys(t.Targets)), "|") + " COMMAND [ARGUMENTS]"
	case t.Place == diagnostics.Node:
		return "NODE COMMAND [ARGUMENTS]"
	case t.Commands == nil:
		return "[OPTIONS]"
	}
	return "COMMAND [ARGUMENTS]"
}

func describe(t diagnostics.Tool) string {
	var b strings.Builder
	if t.Commands != nil {
		fmt.Fprintf(&b, "Commands: %s\n", strings.Join(t.Commands, ", "))
	}
	if t.Options != nil {
		fmt.Fprintf(&b, "Options: %s\n", strings.Join(t.OptionNames(), ", "))
	}
	switch t.Name {
	case "doctor":
		b.WriteString("Without a node, all nodes. Exit code 0: no problem; 2: problems; 1: a node could not be asked.\n")
	case "tcpdump":
		b.WriteString("-w FILE saves the packets in a file on this machine, for Wireshark. -w - prints them.\n")
	case "trace":
		b.WriteString("DESTINATION is [NAMESPACE/]POD, an address, or svc/[NAMESPACE/]NAME. PROTOCOL: TCP, UDP or SCTP.\n")
	}
	fmt.Fprintf(&b, "Needs the right to create tokens of the ServiceAccount %s.\n\nExamples:", t.Account)
	for _, example := range examples()[t.Name] {
		b.WriteString("\n   kubectl northbound " + example)
	}
	return b.String()
}

// runTool runs a tool on a node, which is the first argument, or on any node of the control plane.
func runTool(c *cli.Context, t diagnostics.Tool) error {
	args, node := c.Args().Slice(), c.String("node")
	if t.Place == diagnostics.Node {
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return fmt.Errorf("%s: the node is missing: want %s", t.Name, argumentsOf(t))
		}
		node, args = args[0], args[1:]
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	return runOn(c, s, t, node, args, c.App.Writer)
}

// toolTimeout limits how long a tool may take that is no capture.
const toolTimeout = 10 * time.Minute

// runOn runs a tool, and ends with its exit code.
func runOn(
	c *cli.Context, s *remote.Session, t diagnostics.Tool, node string, args []string, stdout io.Writer,
) error {
	ctx := c.Context
	if t.Account != diagnostics.Capturer {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, toolTimeout)
		defer cancel()
	}
	to, err := s.OnNode(ctx, t.Place, node)
	if err != nil {
		return err
	}
	exit, err := s.Run(ctx, to, t, args, stdout, c.App.ErrWriter)
	if err == nil && exit != 0 {
		return cli.Exit("", exit)
	}
	return err
}

// tool is one that exists.
func tool(p diagnostics.Place, name string) diagnostics.Tool { return *diagnostics.Find(p, name) }

// runTcpdump runs tcpdump on the node of a pod. Packets for a file are written on this machine.
func runTcpdump(c *cli.Context) (err error) {
	if c.NArg() == 0 || strings.HasPrefix(c.Args().First(), "-") {
		return errors.New("tcpdump: the pod is missing: want [NAMESPACE/]POD [-w FILE] [OPTIONS] [EXPRESSION]")
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	namespace, name := qualified(c.Args().First(), s.Default)
	args := append([]string{namespace + "/" + name}, c.Args().Tail()...)
	stdout := c.App.Writer
	if at := slices.Index(args, "-w"); at >= 0 && at+1 < len(args) {
		if file := args[at+1]; file != "-" {
			f := &lazyFile{path: file}
			defer func() { err = errors.Join(err, f.Close()) }()
			stdout, args[at+1] = f, "-"
		}
		args = append(args, "-U") // each packet as soon as it comes
	} else {
		args = append(args, "-l")
	}
	node, err := s.NodeOf(c.Context, namespace, name)
	if err != nil {
		return err
	}
	err = runOn(c, s, tool(diagnostics.Node, "tcpdump"), node, optionsFirst(args), stdout)
	if c.Err() != nil {
		return nil // the user has seen enough
	}
	return err
}

// lazyFile is made when something is written to it: a capture that cannot begin leaves the file of an earlier one
// alone.
type lazyFile struct {
	path string
	file *os.File
}

func (f *lazyFile) Write(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.Create(f.path); err != nil {
			return 0, fmt.Errorf("making the file for packets: %w", err)
		}
	}
	return f.file.Write(b)
}

// Close closes the file if there is one.
func (f *lazyFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// optionsFirst moves -U or -l, the last argument, behind the pod: tcpdump takes no options behind its expression.
func optionsFirst(args []string) []string {
	last := len(args) - 1
	return slices.Concat(args[:1], args[last:], args[1:last])
}

// qualified splits [NAMESPACE/]NAME.
func qualified(given, namespace string) (string, string) {
	if ns, name, ok := strings.Cut(given, "/"); ok {
		return ns, name
	}
	return namespace, given
}

// runExplain adds the namespace to the name of a namespaced object, as kubectl does.
func runExplain(c *cli.Context) error {
	s, err := session(c)
	if err != nil {
		return err
	}
	args := explainArgs(c.Args().Slice(), s.Default)
	return runOn(c, s, tool(diagnostics.Master, "explain"), c.String("node"), args, c.App.Writer)
}

// namespacedKinds are the kinds of explain whose names need a namespace, with kubectl's short names.
func namespacedKinds() []string {
	return []string{"svc", "service", "pod", "po", "networkpolicy", "netpol", "np"}
}

// explainArgs adds -n to KIND/NAME or KIND NAME, unless the arguments have it.
func explainArgs(args []string, namespace string) []string {
	has := slices.ContainsFunc(args, func(a string) bool { return a == "-n" || strings.HasPrefix(a, "--namespace") })
	if has || len(args) == 0 {
		return args
	}
	kind, name, _ := strings.Cut(args[0], "/")
	if !slices.Contains(namespacedKinds(), kind) || strings.Contains(name, "/") ||
		name == "" && (len(args) < 2 || strings.Contains(args[1], "/")) {
		return args
	}
	return append(slices.Clone(args), "-n", namespace)
}
