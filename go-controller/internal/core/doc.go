// Package core turns what the cluster is into what the Northbound database should hold. Start-up, an ordinary event,
// repair of drift, garbage collection, `plan`, `translate`, `explain` and the commands by hand all use it; none has a
// copy of its steps:
//
//   - Step applies events to the State, lets package allocate grant what is missing, and names the owners whose rows
//     may have changed.
//   - Batch asks the translators for the rows that these owners want, compares them with a database, and collects the
//     plans of one transaction.
//
// The package is pure: its callers bring the events and carry out the plans, patches and reports.
package core
