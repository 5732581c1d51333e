package show

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// text prints what `ovn-nbctl show` (ovn-nbctl(8)) of OVN 23.03 prints, sorted by name; ovn-nbctl's order is that of
// its hash tables. Later releases add a line to each router port: the link-local address that is derived from its MAC.
func (v *view) text() []byte {
	var b bytes.Buffer
	for _, ls := range rows[nbdb.LogicalSwitch](v, nbdb.LogicalSwitchTable) {
		fmt.Fprintf(&b, "switch %s (%s)\n", ls.UUID, ls.Name)
		for _, p := range v.switchPorts(ls) {
			writeSwitchPort(&b, p)
		}
	}
	for _, lr := range rows[nbdb.LogicalRouter](v, nbdb.LogicalRouterTable) {
		fmt.Fprintf(&b, "router %s (%s)\n", lr.UUID, lr.Name)
		for _, p := range v.routerPorts(lr) {
			fmt.Fprintf(&b, "    port %s\n", p.Name)
			fmt.Fprintf(&b, "        mac: %s\n", quote(p.MAC))
			fmt.Fprintf(&b, "        networks: %s\n", list(p.Networks))
		}
		for _, n := range members[nbdb.NAT](v, nbdb.NATTable, lr.Nat) {
			fmt.Fprintf(&b, "    nat %s\n        external ip: %s\n", n.UUID, quote(n.ExternalIP))
			if n.ExternalPortRange != "" {
				fmt.Fprintf(&b, "        external port(s): %s\n", quote(n.ExternalPortRange))
			}
			fmt.Fprintf(&b, "        logical ip: %s\n        type: %s\n", quote(n.LogicalIP), quote(n.Type))
		}
	}
	return b.Bytes()
}

func writeSwitchPort(b *bytes.Buffer, p *nbdb.LogicalSwitchPort) {
	fmt.Fprintf(b, "    port %s\n", p.Name)
	if p.Type != "" {
		fmt.Fprintf(b, "        type: %s\n", p.Type)
	}
	if p.Tag != nil {
		fmt.Fprintf(b, "        tag: %d\n", *p.Tag)
	}
	// "router" stands for the addresses of the router port; ovn-nbctl does not show it.
	asRouter := p.Type == "router" && slices.Equal(p.Addresses, []string{"router"})
	if len(p.Addresses) > 0 && !asRouter {
		fmt.Fprintf(b, "        addresses: %s\n", list(p.Addresses))
	}
	if r := p.Options["router-port"]; r != "" {
		fmt.Fprintf(b, "        router-port: %s\n", r)
	}
}

func quote(s string) string { return `"` + s + `"` }

func list(values []string) string {
	values = slices.Sorted(slices.Values(values))
	for i, s := range values {
		values[i] = quote(s)
	}
	return "[" + strings.Join(values, ", ") + "]"
}
