package translate

import (
	"net/netip"
	"reflect"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Maker makes the rows of one owner. UID is the Kubernetes UID of the object behind the owner, "" for none.
type Maker struct {
	Schema *nb.Schema
	Owner  nb.Owner
	UID    string
}

// UUID is the UUID of the owner's row of a role.
func (m Maker) UUID(table, role string) string {
	return names.RowUUID(table, m.Owner.Kind, m.Owner.Name, role, m.UID)
}

// In is the slot of one of the owner's own rows.
func (m Maker) In(table, role, column string) nb.Slot {
	return nb.Slot{In: nb.Ref{Table: table, UUID: m.UUID(table, role)}, Column: column}
}

// OnAllNodes is where ACLs are listed that hold on all nodes' switches: a port group that has a port of each of them.
// Column "ports" lists these.
func OnAllNodes(column string) nb.Slot {
	group := names.ClusterRow(nbdb.PortGroupTable, names.RoleMcastRouters)
	return nb.Slot{In: nb.Ref{Table: nbdb.PortGroupTable, UUID: group}, Column: column}
}

// Row is the wanted row of a role. It sets the UUID of the model unless the model has one.
func (m Maker) Row(role string, model any, listIn ...nb.Slot) nb.Row {
	table := m.Schema.Ref(model).Table
	if uuid := reflect.ValueOf(model).Elem().FieldByName("UUID"); uuid.String() == "" {
		uuid.SetString(m.UUID(table, role))
	}
	return m.Schema.NewRow(nb.Key{Table: table, Owner: m.Owner, Role: role}, model, listIn...)
}

// Multicast matches multicast. Neighbour discovery and reports of listeners (MLD) are multicast that passes all ACLs.
const Multicast = "(ip4.mcast || ip6.mcast)"

// Keyword matches the packets of a family, and begins the names of its fields.
func Keyword(f names.Family) string {
	if f == names.IPv4 {
		return "ip4"
	}
	return "ip6"
}

// Destination matches packets to an address of a range.
func Destination(p netip.Prefix) string {
	return OneOf(names.FamilyOf(p.Addr().Is4()), "dst", []string{p.String()})
}

// OneOf matches packets of a family that have one of these addresses, ranges and sets on a side, "src" or "dst"
// (ovn-sb(5), Logical_Flow match). The names of sets begin with "$".
func OneOf(f names.Family, side string, among []string) string {
	field := Keyword(f) + "." + side
	if len(among) == 1 {
		return field + " == " + among[0]
	}
	return field + " == {" + strings.Join(among, ", ") + "}"
}
