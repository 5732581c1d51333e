// Command lint checks the project's rules of Go code. `go vet -vettool` runs it
// on each package, and not again on a package without findings until it changes.
//
// The go command 1.26 can lose findings that it keeps: it asks a tool for them as
// JSON, and takes a package for clean where the file with that JSON is gone from
// its cache, or where the package was looked at before as a mere dependency. So
// this command always prints findings as text and fails, of dependencies that are
// our own too: the go command keeps nothing of a tool that failed.
//
// It is composed of public analyzers, so that it takes a minute to build and not
// five; `make lint` builds it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/facts/deprecated"
)

// collectAt is by how many percent the heap grows before it is collected.
const collectAt = 800

const ours = "github.com/northbound-net/northbound/"

func main() {
	debug.SetGCPercent(collectAt) // there is a process for each package, and it ends soon
	rules, err := analyzers()
	if err != nil {
		fail(err)
	}
	os.Args = slices.DeleteFunc(os.Args, func(arg string) bool { return arg == "-json" })
	config := os.Args[len(os.Args)-1]
	unit := read(config)
	switch dependency(unit) {
	case foreign:
		rules = cheapFacts(rules)
	case own:
		if err := askForFindings(config, unit); err != nil {
			fail(err)
		}
	}
	unitchecker.Main(rules...)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "lint:", err)
	os.Exit(1)
}

// cheapFacts are the analyzers for packages of other modules. They find which
// functions are deprecated, and which print as Printf does. Finding every fact
// that the rules can use would cost minutes.
func cheapFacts(rules []*analysis.Analyzer) []*analysis.Analyzer {
	cheap := []*analysis.Analyzer{deprecated.Analyzer, printf.Analyzer}
	others := &analysis.Analyzer{
		Name: "facts", Doc: "let facts of the standard library be read",
		Run: func(*analysis.Pass) (any, error) { return nil, nil },
	}
	seen := map[*analysis.Analyzer]bool{}
	var add func([]*analysis.Analyzer)
	add = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if seen[a] {
				continue
			}
			seen[a] = true
			if !slices.Contains(cheap, a) {
				others.FactTypes = append(others.FactTypes, a.FactTypes...)
			}
			add(a.Requires)
		}
	}
	add(rules)
	return append(cheap, others)
}

// kind is whose package the go command asks only facts of.
type kind int

const (
	none    kind = iota // it asks for findings, too
	library             // the standard library's
	foreign             // another module's
	own                 // this project's
)

// read is a configuration of the go command: what to check. It is nil when there is none, which unitchecker says.
func read(config string) (unit map[string]any) {
	text, err := os.ReadFile(config)
	if err != nil || json.Unmarshal(text, &unit) != nil {
		return nil
	}
	return unit
}

// dependency is the kind of package that a configuration names.
func dependency(unit map[string]any) kind {
	if only, _ := unit["VetxOnly"].(bool); !only {
		return none
	}
	path, _ := unit["ImportPath"].(string)
	host, _, _ := strings.Cut(path, "/")
	switch {
	case strings.HasPrefix(path, ours):
		return own
	case strings.Contains(host, "."):
		return foreign
	}
	return library
}

// askForFindings changes a configuration that asks only for facts.
func askForFindings(config string, unit map[string]any) error {
	unit["VetxOnly"] = false
	text, err := json.Marshal(unit)
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("asking for findings: %w", err)
	}
	return nil
}
