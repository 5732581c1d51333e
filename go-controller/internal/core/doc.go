// Package core turns what the cluster is into what the Northbound database should hold. Start-up, an ordinary event,
// repair of drift, garbage collection, `plan`, `translate`, `explain` and the commands by hand all use it; none has a
// copy of its steps:
//
//   - Start, Step and Advance tell it that all objects are known, what happened, and what time it is. Each lets package
//     allocate grant what is missing, and names the owners whose rows may have changed.
//   - Batch asks the translators for the rows that these owners want, compares them with a database, and collects the
//     plans of one transaction.
//
// It also decides what follows from several objects at once: what three sources together say of a node, which nodes are
// ready, which finalizers and conditions objects get, and which removals wait.
//
// The package is pure: its callers bring the events and carry out the plans, patches and reports.
package core
