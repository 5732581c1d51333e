// Package explain says what the network makes of a Kubernetes object, and why:
// of a Service, the addresses that it answers on and those that it does not, of
// each endpoint whether it serves, what each field comes to, and the Northbound
// rows, which can be compared with those of a database.
//
// What it says is what the translators decide, asked of them and not worked out
// anew. The package is pure, and its types are the JSON that is printed.
package explain
