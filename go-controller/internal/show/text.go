package show

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// text is what `ovn-nbctl show` prints (ovn-nbctl(8)), in the order of names:
// ovn-nbctl's own order is that of its hash tables. The form is that of OVN
// 23.03; later releases add a line with the link-local address that follows
// from each router port's MAC.
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
	// A port that has its router port's addresses says so by this word, and
	// ovn-nbctl then shows none.
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
