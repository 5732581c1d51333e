package nb

import (
	"cmp"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Owner is the thing on whose behalf rows exist. Name is "namespace/name" or "name".
type Owner struct {
	Kind names.Kind
	Name string
}

// String is "Pod default/web-0".
func (o Owner) String() string { return string(o.Kind) + " " + o.Name }

// Owners is an owner of the given kind for every key of m, in no order; name tells the owner's name.
func Owners[K comparable, V any](kind names.Kind, m map[K]V, name func(K) string) []Owner {
	out := make([]Owner, 0, len(m))
	for k := range m {
		out = append(out, Owner{kind, name(k)})
	}
	return out
}

// Compare orders owners by name within the order of names.Kinds. names.ClusterOwner is the first of its kind: it owns
// what rows of the others refer to.
func (o Owner) Compare(p Owner) int {
	if o.Kind != p.Kind {
		if by := cmp.Compare(rank(o.Kind), rank(p.Kind)); by != 0 {
			return by
		}
	}
	if cluster := o.Name == names.ClusterOwner; cluster != (p.Name == names.ClusterOwner) {
		if cluster {
			return -1
		}
		return 1
	}
	return cmp.Compare(o.Name, p.Name)
}

func rank(k names.Kind) int {
	for i, kind := range names.Kinds() {
		if k == kind {
			return i
		}
	}
	return len(names.Kinds())
}

// Key is a row's place: no two rows share table, owner and role.
type Key struct {
	Table string
	Owner Owner
	Role  string
}

// Ref points at a row. In what an owner wants, the UUID is the one that names.RowUUID derives; the planner finds the
// row also when it is under a stand-in (names.StandIn).
type Ref struct{ Table, UUID string }

// Slot is a reference column of another row that lists rows of many owners, such as Logical_Switch.ports or
// Port_Group.acls. It is a sum of memberships: each owner adds and removes only its own rows.
type Slot struct {
	In     Ref
	Column string
}

// Row is one wanted row. Model is a pointer to an nbdb struct whose UUID is set (see names.RowUUID); only columns of
// ours may be set in it. ListIn names every slot that must list the row. Slots and the references in Model name rows by
// their derived UUIDs, whoever owns them.
type Row struct {
	Key    Key
	Model  model.Model
	ListIn []Slot
}

// View is a Northbound database as it is. Returned models must not be modified, and are valid until the next change.
type View interface {
	// Owned lists the rows that carry o's mark.
	Owned(o Owner) []Ref
	// Row is the row, nil when there is none.
	Row(r Ref) model.Model
	// Rows lists the rows of a table, whoever made them.
	Rows(table string) []model.Model
	// Parents lists the slots that list the row now.
	Parents(r Ref) []Slot
	// Lists tells whether s lists the row uuid.
	Lists(s Slot, uuid string) bool
	// Spent tells whether a row of this UUID was deleted not long ago.
	Spent(r Ref) bool
	// Lacks tells whether the database has no such column, because its schema is older than the one that brought it.
	Lacks(table, column string) bool
}

// MissingParentError tells that a row has to wait: it must be listed in a row, or refers to one, that is not there yet.
type MissingParentError struct {
	Key Key
	// Slot.In is the missing row. Slot.Column is its column that must list the row.
	Slot Slot
	// Reference is the row's own column that refers to the missing row; "" when that must list it.
	Reference string
}

// Error implements error.
func (e *MissingParentError) Error() string {
	if e.Reference != "" {
		return fmt.Sprintf("%s of %s refers in %s to row %s of %s, which does not exist yet",
			e.Key.Table, e.Key.Owner, e.Reference, e.Slot.In.UUID, e.Slot.In.Table)
	}
	return fmt.Sprintf("%s of %s must be listed in %s.%s of row %s, which does not exist yet",
		e.Key.Table, e.Key.Owner, e.Slot.In.Table, e.Slot.Column, e.Slot.In.UUID)
}
