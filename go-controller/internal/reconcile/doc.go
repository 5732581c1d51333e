// Package reconcile keeps the Northbound database equal to what the cluster wants. It is the only writer of that
// database.
//
// One goroutine owns the cluster's State. It applies what the API server says and what changed in the database, finds
// the owners that are concerned, plans for each how its rows get from have to want, and sends the plans of many owners
// as one transaction. While that is in flight the next batch gathers: latency is low when idle, and batches grow under
// load.
//
// Start-up, an ordinary change, repair of what somebody edited, and removal of what deleted owners left behind are the
// same: an owner is dirty, so it is planned.
//
// Nothing is written before the cluster and the database are both known (the in-sync gate). When a transaction is
// rejected, halving the batch finds the owner to blame. That owner is retried with backoff; the others go on.
package reconcile
