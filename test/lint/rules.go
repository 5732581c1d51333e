package main

import (
	"fmt"
	"slices"

	"4d63.com/gochecknoglobals/checknoglobals"
	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/OpenPeeDeeP/depguard/v2"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"github.com/ultraware/funlen"
	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

// statements is how many a function may have; package limits counts lines.
const statements = 60

// analyzers are all rules.
func analyzers() ([]*analysis.Analyzer, error) {
	imports, err := depguard.NewAnalyzer(importRules())
	if err != nil {
		return nil, fmt.Errorf("reading the rules of imports: %w", err)
	}
	wraps := errorlint.NewAnalyzer()
	if err := wraps.Flags.Set("errorf", "true"); err != nil {
		return nil, fmt.Errorf("setting up errorlint: %w", err)
	}
	everywhere := slices.Concat(vet(), staticChecks(), []*analysis.Analyzer{
		imports, wraps, ineffassign.Analyzer, initFunctions(), spelling(), suppressions(),
		unnecessaryConversions(), unusedCode(),
	})
	notInTests := []*analysis.Analyzer{
		bodyclose.Analyzer, checknoglobals.Analyzer(), funlen.NewAnalyzer(-1, statements, true), names(), uncheckedErrors(),
	}
	for _, a := range everywhere {
		restrict(a, handWritten)
	}
	for _, a := range notInTests {
		restrict(a, handWrittenProduct)
	}
	return append(everywhere, notInTests...), nil
}

// staticChecks are staticcheck's analyzers, except those of names and comments:
// revive checks these.
func staticChecks() []*analysis.Analyzer {
	without := []string{"ST1000", "ST1003", "ST1016", "ST1020", "ST1021", "ST1022"}
	var all []*analysis.Analyzer
	for _, a := range slices.Concat(staticcheck.Analyzers, stylecheck.Analyzers, simple.Analyzers, quickfix.Analyzers) {
		if !slices.Contains(without, a.Analyzer.Name) {
			all = append(all, a.Analyzer)
		}
	}
	return all
}
