// Package vuln pins the programs that look for known vulnerabilities, and with them a version of Go's database of
// vulnerabilities, which is part of the module golang.org/x/vulndb. It is a module of its own because these need many
// modules that nothing else does. test/vulncheck.sh runs them.
package vuln
