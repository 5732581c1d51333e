// Package policytest makes random clusters with policies, and asks the rows that the master makes of them who may
// connect to whom. Tests compare the answers with what others say: the model in the tests of package policy, and the
// libraries of test/oracles. It is imported by tests only.
//
//   - Dice make a Cluster, and a Connection that somebody may try in it.
//   - Cluster.Rows evaluates the rows of a cluster, and Ask asks them about a connection.
//   - Cluster.Shrink makes a cluster smaller, as long as a connection still shows what is wrong.
package policytest
