package show

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// How many ports of a switch and how many virtual addresses of a load balancer group a graph shows, to stay readable.
const (
	mostPorts = 16
	mostVIPs  = 24
)

// dot prints a graph for graphviz (dot(1)): routers above switches above load balancers. The lines between them end at
// the cells of their ports.
func (v *view) dot() []byte {
	g := &graph{view: v, peers: map[string]string{}}
	g.out.WriteString(`graph northbound {
  graph [rankdir=TB, ranksep=0.7, nodesep=0.35, splines=spline, bgcolor=white];
  node [shape=plain, fontname="Helvetica", fontsize=11];
  edge [color="#555555", fontname="Helvetica", fontsize=10];
`)
	for _, lr := range rows[nbdb.LogicalRouter](v, nbdb.LogicalRouterTable) {
		g.router(lr)
	}
	for _, ls := range rows[nbdb.LogicalSwitch](v, nbdb.LogicalSwitchTable) {
		g.logicalSwitch(ls)
	}
	for _, lg := range rows[nbdb.LoadBalancerGroup](v, nbdb.LoadBalancerGroupTable) {
		g.balancers(lg.UUID, lg.Name, lg.LoadBalancer)
	}
	g.out.Write(g.edges.Bytes())
	g.out.WriteString("}\n")
	return g.out.Bytes()
}

// graph collects nodes and edges.
type graph struct {
	*view
	out, edges bytes.Buffer
	peers      map[string]string // router port name -> its cell
}

// Colours of the kinds of nodes: heading and body.
const (
	routerColours = `BGCOLOR="#1f4e79"|BGCOLOR="#dce9f5"`
	switchColours = `BGCOLOR="#2e6b3e"|BGCOLOR="#e4f2e7"`
	groupColours  = `BGCOLOR="#7a4a12"|BGCOLOR="#f8ecdc"`
)

// table writes a node as a table: a heading that spans columns cells, and rows.
func (g *graph) table(id, colours, title string, columns int, rows []string) {
	head, body, _ := strings.Cut(colours, "|")
	fmt.Fprintf(&g.out, `  %q [label=<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4" COLOR="#888888" %s>
    <TR><TD PORT="head" COLSPAN="%d" %s><FONT COLOR="white"><B>%s</B></FONT></TD></TR>
`, id, body, columns, head, title)
	for _, r := range rows {
		fmt.Fprintf(&g.out, "    <TR>%s</TR>\n", r)
	}
	g.out.WriteString("  </TABLE>>];\n")
}

// router writes a router with its ports side by side, so that the lines from them go straight down.
func (g *graph) router(lr *nbdb.LogicalRouter) {
	var cells []string
	for i, p := range g.routerPorts(lr) {
		port := fmt.Sprintf("p%d", i)
		g.peers[p.Name] = fmt.Sprintf("%q:%s:s", lr.UUID, port)
		lines := append([]string{"<B>" + html.EscapeString(p.Name) + "</B>"}, escaped(p.Networks)...)
		cells = append(cells, fmt.Sprintf("<TD PORT=%q>%s</TD>", port, strings.Join(lines, "<BR/>")))
	}
	var rows []string
	if len(cells) > 0 {
		rows = []string{strings.Join(cells, "")}
	}
	g.table(lr.UUID, routerColours, "router "+html.EscapeString(lr.Name), max(1, len(cells)), rows)
}

// logicalSwitch writes a switch with a line for each port, those to routers first.
func (g *graph) logicalSwitch(ls *nbdb.LogicalSwitch) {
	title := "switch " + html.EscapeString(ls.Name)
	if s := ls.OtherConfig["subnet"]; s != "" {
		title += "<BR/>" + html.EscapeString(s)
	}
	if s := ls.OtherConfig["ipv6_prefix"]; s != "" {
		title += "<BR/>" + html.EscapeString(s) + "/64" // always of this length (ovn-nb(5))
	}
	ports := g.switchPorts(ls)
	slices.SortStableFunc(ports, func(a, b *nbdb.LogicalSwitchPort) int { return rank(a) - rank(b) })
	var lines []string
	for i, p := range ports {
		if i == mostPorts {
			lines = append(lines, fmt.Sprintf(`<TD COLSPAN="2"><I>and %d more ports</I></TD>`, len(ports)-i))
			break
		}
		lines = append(lines, g.switchPort(ls, fmt.Sprintf("p%d", i), p))
	}
	g.table(ls.UUID, switchColours, title, 2, lines)
	for _, u := range ls.LoadBalancerGroup {
		fmt.Fprintf(&g.edges, "  %q -- %q:head:n [style=dashed];\n", ls.UUID, u)
	}
	if own := ls.UUID + " load_balancer"; len(ls.LoadBalancer) > 0 {
		g.balancers(own, "of "+ls.Name, ls.LoadBalancer)
		fmt.Fprintf(&g.edges, "  %q -- %q:head:n [style=dashed];\n", ls.UUID, own)
	}
}

func (g *graph) switchPort(ls *nbdb.LogicalSwitch, port string, p *nbdb.LogicalSwitchPort) string {
	if peer, ok := g.peers[p.Options["router-port"]]; ok {
		fmt.Fprintf(&g.edges, "  %s -- %q:head:n [penwidth=1.6];\n", peer, ls.UUID)
	}
	what := escaped(p.Addresses)
	if p.Type == "router" {
		what = []string{"to " + html.EscapeString(p.Options["router-port"])}
	} else {
		for i, a := range what { // the MAC follows from the address
			if _, ips, ok := strings.Cut(a, " "); ok {
				what[i] = strings.ReplaceAll(ips, " ", "<BR/>")
			}
		}
	}
	return fmt.Sprintf(`<TD PORT=%q ALIGN="LEFT">%s</TD><TD ALIGN="LEFT">%s</TD>`,
		port, html.EscapeString(title(g.schema, p)), strings.Join(what, "<BR/>"))
}

// title names a port for people: a pod's port by the pod's name.
func title(s *nb.Schema, p *nbdb.LogicalSwitchPort) string {
	if k, ok := s.Mark(p); ok && k.Owner.Kind == names.KindPod {
		return "pod " + k.Owner.Name
	}
	return p.Name
}

// rank sorts ports to routers before management ports before pods.
func rank(p *nbdb.LogicalSwitchPort) int {
	switch {
	case p.Type == "router":
		return 0
	case p.ExternalIDs[names.KeyPod] == "":
		return 1
	}
	return 2
}

// balancers writes load balancers with a line for each virtual address.
func (g *graph) balancers(id, of string, uuids []string) {
	var lines []string
	total := 0
	for _, lb := range members[nbdb.LoadBalancer](g.view, nbdb.LoadBalancerTable, uuids) {
		for _, vip := range slices.Sorted(maps.Keys(lb.Vips)) {
			if total++; total > mostVIPs {
				continue
			}
			backends := strings.ReplaceAll(html.EscapeString(lb.Vips[vip]), ",", "<BR/>")
			if backends == "" {
				backends = "<I>rejected: no backend</I>"
			}
			proto := ""
			if lb.Protocol != nil {
				proto = "/" + *lb.Protocol
			}
			lines = append(lines, fmt.Sprintf(`<TD ALIGN="LEFT">%s</TD><TD ALIGN="LEFT">%s</TD><TD ALIGN="LEFT">%s</TD>`,
				html.EscapeString(lb.Name), html.EscapeString(vip+proto), backends))
		}
	}
	if total > mostVIPs {
		lines = append(lines, fmt.Sprintf(`<TD COLSPAN="3"><I>and %d more</I></TD>`, total-mostVIPs))
	}
	g.table(id, groupColours, "load balancers: "+html.EscapeString(of), 3, lines)
}

func escaped(values []string) []string {
	out := slices.Sorted(slices.Values(values))
	for i, s := range out {
		out[i] = html.EscapeString(s)
	}
	return out
}
