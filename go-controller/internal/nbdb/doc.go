// Package nbdb holds the Go models of the OVN_Northbound database, one struct
// per table, generated from ovn-nb.ovsschema (schema 7.0.0, as OVN 23.03 ships
// it). It is the oldest schema the product runs against: a newer server has
// every column named here, and a column that only newer servers have is added
// together with a probe for it. Column meanings: ovn-nb(5).
//
// Only this file and file.go are written by hand; the rest comes from
// `go generate`.
package nbdb

//go:generate go tool modelgen -extended -p nbdb -o . ovn-nb.ovsschema
