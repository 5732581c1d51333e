// Package vswitchdb holds the Go models of the Open_vSwitch database, one
// struct per table, generated from vswitch.ovsschema (schema 8.3.1, as OVS 3.1
// ships it). It is the oldest schema the product runs against: a newer server
// has every column named here. Column meanings: ovs-vswitchd.conf.db(5).
//
// Only this file is written by hand; the rest comes from `go generate`.
package vswitchdb

//go:generate go tool modelgen -extended -p vswitchdb -o . vswitch.ovsschema
