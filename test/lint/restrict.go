package main

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/northbound-net/northbound/test/lint/source"
)

// restrict drops what a rule reports of files that the rule does not apply to, and
// of lines whose comment suppresses it. It adds the rule's name to the rest.
func restrict(a *analysis.Analyzer, applies func(*ast.File, string) bool) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		files := map[string]*ast.File{}
		for _, f := range pass.Files {
			files[pass.Fset.PositionFor(f.Pos(), false).Filename] = f
		}
		restricted := *pass
		restricted.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.PositionFor(d.Pos, false)
			f := files[at.Filename]
			if f == nil || !applies(f, at.Filename) || slices.Contains(suppressed(pass, f, at.Line), a.Name) {
				return
			}
			d.Message += " (" + a.Name + ")"
			pass.Report(d)
		}
		return run(&restricted)
	}
}

// handWritten tells whether a person wrote a file.
func handWritten(f *ast.File, _ string) bool { return !source.Generated(f) }

// handWrittenProduct tells whether a person wrote a file, and not as a test.
func handWrittenProduct(f *ast.File, name string) bool {
	return handWritten(f, name) && !strings.HasSuffix(filepath.Base(name), "_test.go")
}

// suppression matches a comment such as "//nolint:errcheck // why". Its groups are
// the rules and the rest.
func suppression() *regexp.Regexp { return regexp.MustCompile(`^//\s*nolint\b(?::([\w,-]*))?(.*)$`) }

// suppressed are the rules that a line's comment names.
func suppressed(pass *analysis.Pass, f *ast.File, line int) []string {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if m := suppression().FindStringSubmatch(c.Text); m != nil && pass.Fset.Position(c.Pos()).Line == line {
				return strings.Split(m[1], ",")
			}
		}
	}
	return nil
}

// suppressions checks that a comment that suppresses a rule names the rule and
// says why.
func suppressions() *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "nolintlint", Doc: "check that comments that suppress a rule name it and say why",
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range pass.Files {
				for _, group := range f.Comments {
					for _, c := range group.List {
						m := suppression().FindStringSubmatch(c.Text)
						if m == nil {
							continue
						}
						why, ok := strings.CutPrefix(strings.TrimSpace(m[2]), "//")
						if m[1] == "" || m[1] == "all" || !ok || strings.TrimSpace(why) == "" || !strings.HasPrefix(c.Text, "//nolint") {
							pass.Reportf(c.Pos(), "%s: want //nolint:RULE // WHY", c.Text)
						}
					}
				}
			}
			return nil, nil
		},
	}
}
