// Package reconcile is the loop that keeps the Northbound database equal to
// what the cluster wants. It is the only writer of that database.
//
// One goroutine owns the cluster's State. It takes in what the API server says
// and what changed in the database, finds the owners concerned, plans for each
// what moves its rows from have to want, and sends the plans of many owners as
// one transaction. While that is under way the next batch gathers, so latency
// is low when idle and batches grow under load by themselves.
//
// Start-up, an ordinary change, repair of what somebody edited, and the removal
// of what is left over from owners that are gone are all this same road: an
// owner is dirty, so it is planned.
//
// Nothing is written before the cluster and the database are both known
// (the in-sync gate). An owner whose transaction is refused is told apart by
// halving the batch, and tried again with backoff; the others go on.
package reconcile
