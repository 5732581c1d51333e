package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/diagnostics/server"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/review"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// diagnosticsCommand is `ovnkube diagnostics`, a container of the chart's pods.
func diagnosticsCommand() *cli.Command {
	return &cli.Command{
		Name:  "diagnostics",
		Usage: "answer `kubectl northbound`: run tools that look at this node or at the control plane",
		Description: "Listens on the loopback address. A caller needs a token that the API server confirms, of a\n" +
			"ServiceAccount whose tokens only some may create. The tools are listed; none of them changes anything.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("for", "", "`PLACE` whose tools are run: node, master or database; required"),
			stringFlag("node-name", "", "`NAME` of the Kubernetes Node; required"),
			stringFlag("namespace", "ovn-kubernetes", "`NAMESPACE` of the ServiceAccounts of callers"),
		}, kubernetesFlags(), logFlags("info")),
		Action: runDiagnostics,
	}
}

func runDiagnostics(c *cli.Context) error {
	place := diagnostics.Place(c.String("for"))
	if !slices.Contains(diagnostics.Places(), place) {
		return usageError{fmt.Errorf("--for %q: want node, master or database", place)}
	}
	if c.String("node-name") == "" {
		return usageError{errors.New("--node-name: the name of the Node is missing")}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube-diagnostics")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(place.Port())))
	if err != nil {
		return fmt.Errorf("listening for diagnostics: %w", err)
	}
	s := &server.Server{Place: place, Node: c.String("node-name"), Log: log,
		Tools:  slices.DeleteFunc(diagnostics.Tools(), func(t diagnostics.Tool) bool { return t.Place != place }),
		Review: review.Reviewer{Kube: clients.Kube, Namespace: c.String("namespace")}.Review}
	log.Info("serving diagnostics", "place", place, "address", listener.Addr())
	return s.Serve(c.Context, listener)
}

// tcpdumpCommand is `ovnkube tcpdump`.
func tcpdumpCommand() *cli.Command {
	return &cli.Command{
		Name:      "tcpdump",
		Usage:     "show the packets of a pod on this node, with tcpdump",
		ArgsUsage: "NAMESPACE/POD [OPTION ...] [EXPRESSION]",
		Description: "Options and the expression are tcpdump's. The packets are those that the pod's interface sends and\n" +
			"receives, before policies drop what it sends, and after they have dropped what it would receive.",
		SkipFlagParsing: true,
		Before:          func(*cli.Context) error { return nil },
		Action: func(c *cli.Context) error {
			pod := c.Args().First()
			if pod == "-h" || pod == "--help" {
				return cli.ShowSubcommandHelp(c)
			}
			port, err := interfaceOf(c.Context, ovsFlag().(*cli.StringFlag).Value, pod)
			if err != nil {
				return err
			}
			path, err := exec.LookPath("tcpdump")
			if err != nil {
				return fmt.Errorf("looking for tcpdump: %w", err)
			}
			// It keeps its user: a container may lack the right to change it. It asks DNS for no names: whoever sends packets
			// chooses the addresses.
			argv := slices.Concat([]string{"tcpdump", "-n", "-Z", "root", "-i", port}, c.Args().Tail())
			return fmt.Errorf("starting tcpdump: %w", syscall.Exec(path, argv, os.Environ()))
		},
	}
}

// interfaceOf is the interface of a pod, NAMESPACE/NAME, on this node.
func interfaceOf(ctx context.Context, address, pod string) (string, error) {
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok || namespace == "" || name == "" {
		return "", usageError{fmt.Errorf("tcpdump: pod %q: want NAMESPACE/POD", pod)}
	}
	id := names.Own.LogicalPort(namespace, name, "")
	answers, err := ovs.Ask(ctx, address, nil, "Open_vSwitch", ovs.Select{
		Table: "Interface", Where: ovs.HasPair("external_ids", names.IfaceID, id),
		Columns: []string{"name", "ofport"}})
	if err != nil {
		return "", fmt.Errorf("looking for the interface of pod %s: %w", pod, err)
	}
	for _, row := range answers[0] {
		if row.Int("ofport") > 0 {
			return row.Text("name"), nil
		}
	}
	return "", fmt.Errorf("pod %s has no interface on this node: want a pod that runs here, without hostNetwork", pod)
}
