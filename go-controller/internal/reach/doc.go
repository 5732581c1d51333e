// Package reach answers who may connect to whom, and which rule of which policy says so.
//
//   - Ask reads a question such as "shop/web-0" to "svc/shop/db:5432/TCP".
//   - Cluster.Check answers a question. The verdict is that of the wanted rows, which package verdict evaluates: what
//     OVN does, and not a second reading of policies. An ACL's mark says which rule it is for.
//   - The matrix has the answers between all classes of pods, the diff what differs between those of two clusters. A
//     line that an ACL logged is explained in the same words.
//   - Beside a database, Check also tells how the deciding rows are there, and whether the database's own rows decide
//     otherwise.
//
// The package is pure. Its types define the JSON output.
package reach
