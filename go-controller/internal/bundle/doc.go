// Package bundle is the file that `kubectl northbound bundle` makes of a cluster: a compressed tar archive in one
// directory. It says where things are in it; `ovnkube` reads its manifest and its Northbound database.
package bundle
