package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// fixRestartController starts ovn-controller, or restarts it.
const fixRestartController = "systemctl restart ovn-controller"

func checkController(ctx context.Context, h *facts) Finding {
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	out, err := h.t.Appctl(ctx, h.c.Node.OVNRunDir, "ovn-controller", "version")
	if errors.Is(err, fs.ErrNotExist) {
		return problem("ovn-controller does not run: %v", err).fixed("systemctl start ovn-controller",
			"# when it runs, --ovn-rundir is another: now "+h.c.Node.OVNRunDir)
	}
	if err != nil {
		return problem("ovn-controller does not answer: %v", err).fixed(fixRestartController,
			"# why it ended: /var/log/ovn/ovn-controller.log")
	}
	version := VersionIn(out)
	if !AtLeast(version, OldestOVN) {
		return problem("ovn-controller is %s, older than %s", version, OldestOVN).fixed("# upgrade OVN")
	}
	status, err := h.t.Appctl(ctx, h.c.Node.OVNRunDir, "ovn-controller", "connection-status")
	if err != nil {
		return problem("ovn-controller does not answer: %v", err).fixed(fixRestartController)
	}
	if status != "connected" {
		return problem("ovn-controller %s is %s to the Southbound database (%s=%q)", version, status, names.OVSRemote,
			h.ids[names.OVSRemote]).fixed("# see the check southbound, and /var/log/ovn/ovn-controller.log")
	}
	return ok("ovn-controller %s, connected", version)
}

func checkSouthbound(_ context.Context, h *facts) Finding {
	switch {
	case errors.Is(h.sbErr, errNoRemote):
		return problem("%v: ovn-controller does not know its database", h.sbErr).
			fixed("ovs-vsctl set Open_vSwitch . external_ids:" + names.OVSRemote + "=ssl:HOST:6642")
	case h.sbErr != nil:
		return problem("the Southbound database does not answer: %v", h.sbErr).
			fixed("# on the database's host: does ovsdb-server run, and listen? "+
				"`ovn-sbctl set-connection role=ovn-controller pssl:6642`",
				"# between: is the port open?")
	}
	return ok("%s, %d chassis", h.sbRemote, len(h.chassis))
}

// checkDatabaseAccess looks for databases that believe whoever reaches them.
func checkDatabaseAccess(_ context.Context, h *facts) Finding {
	var nb []string
	if h.c.Northbound != nil {
		nb = h.c.Northbound.Addresses
	}
	f := faults{fixes: []string{"# docs/operate/security.md, \"Who may reach the databases\""}}
	for _, err := range []error{
		config.RefuseTCP("external_ids:"+names.OVSRemote, config.ParseRemotes(h.ids[names.OVSRemote])),
		config.RefuseTCP("--nb-address", nb),
	} {
		if err != nil {
			f.add(err.Error())
		}
	}
	return f.finding("no address is tcp:")
}

// endpoint is one row of Encap.
type endpoint struct{ kind, ip string }

func (e endpoint) compare(o endpoint) int {
	return cmp.Or(cmp.Compare(e.ip, o.ip), cmp.Compare(e.kind, o.kind))
}

// endpoints are the tunnel ends of a chassis, sorted.
func (h *facts) endpoints(chassis string) (out []endpoint) {
	for _, e := range h.encaps {
		if e.Text("chassis_name") == chassis {
			out = append(out, endpoint{e.Text("type"), e.Text("ip")})
		}
	}
	slices.SortFunc(out, endpoint.compare)
	return out
}

func checkChassis(_ context.Context, h *facts) Finding {
	id := h.ids[names.OVSSystemID]
	i := slices.IndexFunc(h.chassis, func(r ovs.Row) bool { return r.Text("name") == id })
	if i < 0 {
		f := problem("chassis %q, which is this node's system-id, is not in the Southbound database", id)
		if name := commonName(h.sbKeys); name != "" && name != id {
			f = f.fixed(fmt.Sprintf("# its certificate has the common name %q: a listener with role=ovn-controller wants %q",
				name, id))
		}
		return f.fixed(fixRestartController, "# why it does not register: /var/log/ovn/ovn-controller.log")
	}
	if hostname := h.chassis[i].Text("hostname"); hostname != h.c.Node.Name {
		return problem("chassis %s is registered as host %q, this node is %q", id, hostname, h.c.Node.Name).
			fixed("ovs-vsctl set Open_vSwitch . external_ids:" + names.OVSHostname + "=" + h.c.Node.Name)
	}
	var want []endpoint
	for _, ip := range h.host.EncapIPs {
		want = append(want, endpoint{h.ids[names.OVSEncapType], ip.String()})
	}
	slices.SortFunc(want, endpoint.compare)
	if have := h.endpoints(id); !slices.Equal(have, want) {
		return problem("chassis %s is registered with tunnel ends %v, this node's are %v", id, have, want).
			fixed(fixRestartController)
	}
	return ok("%s, tunnel ends %v", id, want)
}

// commonName is that of a connection's own certificate, "" without one.
func commonName(keys *tls.Config) string {
	if keys == nil {
		return ""
	}
	return keys.Certificates[0].Leaf.Subject.CommonName
}

// checkDuplicates looks for other chassis with this node's name or tunnel address.
func checkDuplicates(_ context.Context, h *facts) Finding {
	id := h.ids[names.OVSSystemID]
	why := map[string]string{}
	for _, c := range h.chassis {
		if c.Text("hostname") == h.c.Node.Name {
			why[c.Text("name")] = "the same host name"
		}
	}
	for _, e := range h.encaps {
		if slices.ContainsFunc(h.places, func(p hostnet.Place) bool { return p.Prefix.Addr().String() == e.Text("ip") }) {
			why[e.Text("chassis_name")] = "the tunnel address " + e.Text("ip")
		}
	}
	f := faults{fixes: []string{"# if they are left over from this node's former system-id:"}}
	for _, c := range h.chassis {
		if name := c.Text("name"); name != id && why[name] != "" {
			f.add(fmt.Sprintf("chassis %s has %s too", name, why[name]),
				"ovn-sbctl chassis-del "+name+" # on the database's host: a node's certificate does not allow it")
		}
	}
	return f.finding("no other chassis has this node's name or addresses")
}

// checkNorthbound is for hosts on which commands are run that write to the Northbound
// database.
func checkNorthbound(ctx context.Context, h *facts) Finding {
	if h.c.Northbound == nil {
		return unchecked("--nb-address is not given; a node does not need it")
	}
	address, schema, last := h.northbound(ctx)
	if last == nil {
		return ok("%s, schema %s", address, schema.Version)
	}
	return problem("the Northbound database does not answer: %v", last).
		fixed("# on the database's host: does ovsdb-server run, and listen? `ovn-nbctl set-connection pssl:6641`")
}

// northbound is the first address at which the Northbound database answers, and its schema.
func (h *facts) northbound(ctx context.Context) (address string, schema ovs.Schema, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	for _, address = range h.c.Northbound.Addresses {
		var keys *tls.Config
		if keys, err = h.northboundKeys(address); err != nil {
			continue
		}
		if schema, err = h.t.Schema(ctx, address, keys, ovsdb.DatabaseName); err == nil {
			return address, schema, nil
		}
	}
	return "", ovs.Schema{}, err
}

// northboundKeys are those for an address, nil when it needs none.
func (h *facts) northboundKeys(address string) (*tls.Config, error) {
	if !strings.HasPrefix(address, "ssl:") {
		return nil, nil
	}
	return ovsdb.TLS(*h.c.Northbound)
}

// checkACLNames looks for ACLs of the Northbound database that name an address set or a port group that does not exist.
// OVN ignores such an ACL as a whole: what it denies is open, what it allows is denied.
func checkACLNames(ctx context.Context, h *facts) Finding {
	if h.c.Northbound == nil {
		return unchecked("--nb-address is not given; a node does not need it")
	}
	address, _, err := h.northbound(ctx)
	if err != nil {
		return unchecked("the Northbound database does not answer: %v", err)
	}
	keys, err := h.northboundKeys(address)
	if err != nil {
		return unchecked("%v", err)
	}
	var rows [][]ovs.Row
	err = h.timed(ctx, func(ctx context.Context) (err error) {
		rows, err = h.t.Ask(ctx, address, keys, ovsdb.DatabaseName,
			ovs.Select{Table: "ACL", Columns: []string{"_uuid", "match", "action"}},
			ovs.Select{Table: "Address_Set", Columns: []string{"name"}},
			ovs.Select{Table: "Port_Group", Columns: []string{"name"}})
		return err
	})
	if err != nil {
		return unchecked("%v", err)
	}
	there := map[string]bool{}
	for _, r := range rows[1] {
		there["$"+r.Text("name")] = true
	}
	for _, r := range rows[2] { // OVN makes two address sets of each group
		name := r.Text("name")
		there["@"+name], there["$"+name+"_ip4"], there["$"+name+"_ip6"] = true, true, true
	}
	f := faults{fixes: []string{"# of Northbound's own rows: is a master at work? `ovnkube plan` shows what is missing",
		"# of somebody else's: ovn-nbctl list acl UUID"}}
	unread := 0
	for _, r := range rows[0] {
		missing, ok := missingNames(r.Text("match"), there)
		if !ok {
			unread++
		}
		for _, name := range missing {
			f.add(fmt.Sprintf("ACL %s (%s) names %s, which does not exist: OVN ignores the whole ACL", r.Text("_uuid"),
				r.Text("action"), name))
		}
	}
	if unread > 0 {
		return f.finding("%d ACLs, whose address sets and port groups are there; ovnkube can't read %d others",
			len(rows[0])-unread, unread)
	}
	return f.finding("%d ACLs, whose address sets and port groups are there", len(rows[0]))
}

// missingNames lists the address sets, with "$", and port groups, with "@", that a match names and that are not there.
// It is not ok when this program can't read the match: that is not Northbound's.
func missingNames(match string, there map[string]bool) (out []string, ok bool) {
	sets, groups, err := verdict.Named(match)
	if err != nil {
		return nil, false
	}
	for _, s := range sets {
		out = append(out, "$"+s)
	}
	for _, g := range groups {
		out = append(out, "@"+g)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return there[name] }), true
}
