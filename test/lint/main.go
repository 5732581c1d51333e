// Command lint checks the project's rules of Go code. `go vet -vettool` runs it
// on each package, and caches what it reports until the package changes.
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
	if err == nil && foreign(os.Args[len(os.Args)-1]) {
		rules = cheapFacts(rules)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
	unitchecker.Main(rules...)
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

// foreign tells whether the go command asks only for facts of a package of
// another module, not of the standard library.
func foreign(config string) bool {
	text, err := os.ReadFile(config)
	if err != nil {
		return false // there is none: unitchecker says so
	}
	var c struct {
		VetxOnly   bool
		ImportPath string
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return false // this, too
	}
	host, _, _ := strings.Cut(c.ImportPath, "/")
	return c.VetxOnly && strings.Contains(host, ".") && !strings.HasPrefix(c.ImportPath, ours)
}
