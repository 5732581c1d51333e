package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// tunnelsTimeout limits how long a node may take to say which tunnels it has.
const tunnelsTimeout = 20 * time.Second

// vsctl returns the output of ovs-vsctl on a node.
type vsctl func(ctx context.Context, node string, args ...string) (string, error)

// tunnels asks all nodes for their tunnels: see judgeTunnels.
func (s *Session) tunnels(ctx context.Context, all []Component) error {
	servers, err := s.Servers(ctx, diagnostics.Node)
	if err != nil {
		return err
	}
	return judgeTunnels(ctx, all, func(ctx context.Context, node string, args ...string) (string, error) {
		for _, to := range servers {
			if to.Node == node {
				return s.ask(ctx, to, "vsctl", args...)
			}
		}
		return "", fmt.Errorf("%w on node %q", ErrNoServer, node)
	})
}

// judgeTunnels has each node with a ready agent say to how many others it has tunnels. One that lacks some is not
// ready. If the user may not ask, the error says so.
func judgeTunnels(ctx context.Context, all []Component, ask vsctl) error {
	var nodes []*Component
	for i := range all {
		if c := &all[i]; c.Name == "node" && c.Node != "" && c.Ready {
			nodes = append(nodes, c)
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	errs := make([]error, len(nodes))
	Each(len(nodes), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, tunnelsTimeout)
		defer cancel()
		errs[i] = nodes[i].judgeTunnels(ctx, len(nodes)-1, ask)
	})
	for _, err := range errs {
		if err != nil {
			return err // that of the others says the same
		}
	}
	return nil
}

// judgeTunnels judges a node by its tunnels to so many others.
func (c *Component) judgeTunnels(ctx context.Context, others int, ask vsctl) error {
	reached, failed, err := tunnelsOf(ctx, c.Node, ask)
	if Forbidden(err) {
		return err
	}
	c.Role = fmt.Sprintf("tunnels to %d", reached)
	switch {
	case err != nil:
		c.Role, c.Problem = "", "asking for its tunnels: "+err.Error()
	case reached < others && failed != "":
		c.Problem = fmt.Sprintf("tunnels to %d of %d other nodes: %s", reached, others, failed)
	case reached < others:
		c.Problem = fmt.Sprintf("tunnels to %d of %d other nodes", reached, others)
	}
	if c.Problem != "" {
		c.Ready, c.Try = false, "kubectl northbound doctor "+c.Node
	}
	return nil
}

// chassisKey is what ovn-controller writes on the port of a tunnel: the other chassis, "@", and its address.
const chassisKey = "ovn-chassis-id"

// tunnelsOf is to how many other chassis a node has open tunnels, and the error of one that Open vSwitch can't open.
func tunnelsOf(ctx context.Context, node string, ask vsctl) (reached int, failed string, err error) {
	ports, err := rows(ctx, node, ask, "--columns=name,external_ids", "find", "port", "external_ids:"+chassisKey+`!=""`)
	if err != nil {
		return 0, "", err
	}
	interfaces, err := rows(ctx, node, ask, "--columns=name,ofport,error", "find", "interface", `options:remote_ip!=""`)
	if err != nil {
		return 0, "", err
	}
	open := map[string]bool{}
	for _, i := range interfaces {
		var name, why string
		var ofport int
		_, _ = json.Unmarshal(i[0], &name), json.Unmarshal(i[2], &why) // without an error it is an empty set
		if json.Unmarshal(i[1], &ofport) == nil && ofport > 0 {
			open[name] = true
		} else if why != "" {
			failed = why
		}
	}
	to := map[string]bool{}
	for _, p := range ports {
		var name string
		if json.Unmarshal(p[0], &name) == nil && open[name] {
			chassis, _, _ := strings.Cut(pairs(p[1])[chassisKey], "@")
			to[chassis] = true
		}
	}
	return len(to), failed, nil
}

// rows asks ovs-vsctl for rows of three columns at most. Source: ovs-vsctl(8), "Table Formatting Options", and RFC 7047
// §5.1 for the values.
func rows(ctx context.Context, node string, ask vsctl, args ...string) ([][3]json.RawMessage, error) {
	text, err := ask(ctx, node, append([]string{"--format=json"}, args...)...)
	if err != nil {
		return nil, err
	}
	var table struct {
		Data [][3]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		return nil, fmt.Errorf("reading what ovs-vsctl says on node %s: %w", node, err)
	}
	return table.Data, nil
}

// pairs is a map of strings: ["map", [[KEY, VALUE], ...]].
func pairs(value json.RawMessage) map[string]string {
	out := map[string]string{}
	var parts []json.RawMessage
	var list [][2]string
	if json.Unmarshal(value, &parts) == nil && len(parts) == 2 && json.Unmarshal(parts[1], &list) == nil {
		for _, p := range list {
			out[p[0]] = p[1]
		}
	}
	return out
}
