package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// runTrace has ovn-trace follow the first packet of a connection from a pod.
func runTrace(c *cli.Context) error {
	if c.NArg() < 2 || strings.HasPrefix(c.Args().First(), "-") {
		return errors.New("trace: want [NAMESPACE/]POD DESTINATION[:PORT[/PROTOCOL]] [OPTIONS]")
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	namespace, name := qualified(c.Args().First(), s.Default)
	from, err := s.Attached(c.Context, namespace, name)
	if err != nil {
		return err
	}
	to, port, protocol, err := destination(c.Args().Get(1))
	if err != nil {
		return err
	}
	flow, err := s.Microflow(c.Context, from, to, port, protocol)
	if err != nil {
		return err
	}
	options := c.Args().Slice()[2:]
	if !slices.ContainsFunc(options, func(o string) bool { return slices.Contains(views(), o) }) {
		options = append(slices.Clone(options), "--summary")
	}
	// A new connection, at each place where connections are tracked. ovn-trace takes them for established otherwise.
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "--ct") }) {
		options = slices.Concat(slices.Repeat([]string{"--ct=trk,new"}, connectionLookups), options)
	}
	return runOn(c, s, tool(diagnostics.Database, "trace"), c.String("node"), append(options, from.Switch, flow),
		c.App.Writer)
}

// views are options of ovn-trace that choose how much it prints.
func views() []string { return []string{"--detailed", "--summary", "--minimal", "--all"} }

// connectionLookups is more often than a packet's connection is looked up on its way.
const connectionLookups = 16

// destination splits DESTINATION[:PORT[/PROTOCOL]]. An IPv6 address before a port is in brackets.
func destination(given string) (to, port, protocol string, err error) {
	if _, err := netip.ParseAddr(given); err == nil {
		return given, "", "", nil
	}
	host, rest, err := net.SplitHostPort(given)
	if err != nil {
		return given, "", "", nil // no port
	}
	port, protocol, _ = strings.Cut(rest, "/")
	protocol = strings.ToLower(protocol)
	if protocol == "" {
		protocol = "tcp"
	}
	if !slices.Contains(remote.Protocols(), protocol) {
		return "", "", "", fmt.Errorf("trace: protocol %q of %s: want one of %s", protocol, given,
			strings.Join(remote.Protocols(), ", "))
	}
	return host, port, protocol, nil
}
