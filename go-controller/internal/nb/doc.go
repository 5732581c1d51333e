// Package nb is the vocabulary of wanted Northbound rows and the planner that turns "want" and "have" into the changes
// that move one to the other.
//
//   - Owner is the thing on whose behalf a row exists; Key is the row's place in the world (table, owner, role); Row is
//     one wanted row; Slot is a reference column of another row, perhaps of another owner, that must list it.
//   - Schema knows which columns are ours: what we never name, others may write. external_ids are shared key by key,
//     the other columns of a row of ours belong to us whole. What a column refers to it takes from the database's own
//     schema.
//   - View is what is there. Database is a View in memory, for working offline and for tests; package ovsdb has the
//     live one.
//   - Schema.Plan compares for one owner. It finds the rows to which wanted rows refer, also when they are under other
//     UUIDs than the derived ones (docs/adr/0001). A Plan is a value: it prints as + ~ - lines, and carries what is
//     needed to apply it.
//
// Laws, held by tests: Plan of what is there is empty; applying Plan(have, want) yields want; rows without our mark are
// in no plan; a plan is the same whatever the order of its inputs. The package is pure and knows nothing of Kubernetes.
package nb
