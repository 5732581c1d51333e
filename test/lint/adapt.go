package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"sync"

	"github.com/golangci/misspell"
	"github.com/golangci/unconvert"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
)

// initFunctions forbids func init.
func initFunctions() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "gochecknoinits", Doc: "forbid func init",
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range pass.Files {
				for _, d := range f.Decls {
					if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
						pass.Reportf(d.Pos(), "func init: do what it does where it is needed")
					}
				}
			}
			return nil, nil
		},
	}
}

// uncheckedErrors finds errors that nobody looks at.
func uncheckedErrors() *analysis.Analyzer {
	exclude := append([]string{
		"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln",
		"(io.Closer).Close", "(*os.File).Close", "(net.Conn).Close", "(net.Listener).Close",
		"golang.org/x/sys/unix.Close", "(github.com/containernetworking/plugins/pkg/ns.NetNS).Close",
	}, errcheck.DefaultExcludedSymbols...)
	checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
		BlankAssignments: true, TypeAssertions: true, Symbols: exclude, SymbolRegexpsByPackage: map[string]*regexp.Regexp{},
	}}
	return &analysis.Analyzer{
		Name: "errcheck", Doc: "find unchecked errors",
		Run: func(pass *analysis.Pass) (any, error) {
			result := checker.CheckPackage(&packages.Package{
				Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo,
			})
			for _, e := range result.Unique().UncheckedErrors {
				report(pass, e.Pos, "the error of %s is not checked", cmp.Or(e.SelectorName, e.FuncName, "this call"))
			}
			return nil, nil
		},
	}
}

// spelling finds misspelt words, in comments and in strings.
func spelling() *analysis.Analyzer {
	words := sync.OnceValue(func() *misspell.Replacer { // takes a while, and most packages are only asked for facts
		r := &misspell.Replacer{Replacements: misspell.DictMain}
		r.Compile()
		return r
	})
	return &analysis.Analyzer{
		Name: "misspell", Doc: "find misspelt words",
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range pass.Files {
				file := pass.Fset.File(f.Pos())
				text, err := os.ReadFile(file.Name())
				if err != nil {
					return nil, fmt.Errorf("looking for misspelt words: %w", err)
				}
				_, diffs := words().Replace(string(text))
				for _, d := range diffs {
					pass.Reportf(file.LineStart(d.Line), "%q: want %q", d.Original, d.Corrected)
				}
			}
			return nil, nil
		},
	}
}

// unnecessaryConversions finds conversions of a value to the type that it has.
func unnecessaryConversions() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "unconvert", Doc: "find conversions to the type that a value has",
		Run: func(pass *analysis.Pass) (any, error) {
			for _, at := range unconvert.Run(pass) {
				report(pass, at, "unnecessary conversion")
			}
			return nil, nil
		},
	}
}

// unusedCode finds what a package declares and does not use.
func unusedCode() *analysis.Analyzer {
	find := unused.Analyzer.Analyzer
	return &analysis.Analyzer{
		Name: "unused", Doc: find.Doc, Requires: []*analysis.Analyzer{find},
		Run: func(pass *analysis.Pass) (any, error) {
			result := pass.ResultOf[find].(unused.Result)
			used := map[string]bool{}
			key := func(o unused.Object) string { return fmt.Sprint(o.Position.Filename, o.Position.Line, o.Name) }
			for _, o := range result.Used {
				used[key(o)] = true
			}
			for _, o := range result.Unused {
				if o.Kind != "type param" && !used[key(o)] {
					report(pass, o.Position, "%s %s is unused", o.Kind, o.Name)
				}
			}
			return nil, nil
		},
	}
}
