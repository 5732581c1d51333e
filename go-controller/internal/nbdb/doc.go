// Package nbdb holds the Go models of the OVN_Northbound database, one struct per table. Column meanings: ovn-nb(5).
//
// The models are generated from models.ovsschema: ovn-nb.ovsschema, the oldest schema that the product runs against
// (7.0.0, of OVN 23.03), and the few columns of newer servers that the product writes where they exist. Package nb
// finds out which columns those are by comparing the two files; a server may lack only them.
//
// To use another column of newer servers, copy its definition from theirs into models.ovsschema and generate again.
// Only this file, file.go and the two schema files are written by hand.
package nbdb

//go:generate go tool modelgen -extended -p nbdb -o . models.ovsschema
