// Package translate defines what the Northbound database should hold for a cluster. Each feature is a room: a
// sub-package with one Translator. Package translate/all lists them. Rooms never import each other: a fact that two of
// them share belongs in package cluster or names.
//
// The oracle test is the contract of every Translator. After any path of changes, following Affected leads to the same
// rows as translating the final state from nothing.
package translate
