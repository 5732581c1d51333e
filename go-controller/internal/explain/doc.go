// Package explain explains how the network serves a Kubernetes object. For a Service, it shows which addresses are
// served, which endpoints serve and why, and the effect of each field. It also shows the Northbound rows, and can
// compare them with a database.
//
// It asks the translators for their decisions and does not repeat their logic. The package is pure. Its types define
// the JSON output.
package explain
