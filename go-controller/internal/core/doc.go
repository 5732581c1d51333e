// Package core is the road from what the cluster is to what the Northbound
// database should hold. Start-up, an ordinary event, repair of drift, garbage
// collection, `plan`, `translate`, `explain` and the commands by hand all take
// it; none has a copy of its steps:
//
//   - Step applies events to the State, lets package allocate grant what is
//     missing, and names the owners whose rows may have changed.
//   - Batch asks the translators for the rows that such owners want, compares
//     them with a database, and collects the plans of one transaction.
//
// The package is pure: whoever calls it brings the events and carries out the
// plans, patches and reports.
package core
