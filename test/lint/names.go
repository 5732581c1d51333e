package main

import (
	"fmt"
	"go/token"
	"os"

	"github.com/mgechev/revive/lint"
	"github.com/mgechev/revive/rule"
	"golang.org/x/tools/go/analysis"
)

// confidence is how sure revive must be to report; this is its own default.
const confidence = 0.8

// names checks names and comments, with rules of revive.
func names() *analysis.Analyzer {
	rules := []lint.Rule{
		&rule.ExportedRule{}, &rule.PackageCommentsRule{}, &rule.BlankImportsRule{}, &rule.ErrorStringsRule{},
		&rule.ReceiverNamingRule{}, &rule.VarNamingRule{},
	}
	// Short names of packages, such as nb, are welcome.
	arguments := map[string]lint.Arguments{
		"var-naming": {[]any{}, []any{}, []any{map[string]any{"skip-package-name-checks": true}}},
	}
	return &analysis.Analyzer{
		Name: "revive", Doc: "check names and comments",
		Run: func(pass *analysis.Pass) (any, error) {
			config := lint.Config{Confidence: confidence, Severity: lint.SeverityWarning, Rules: lint.RulesConfig{}}
			for _, r := range rules {
				config.Rules[r.Name()] = lint.RuleConfig{Arguments: arguments[r.Name()]}
				if c, ok := r.(lint.ConfigurableRule); ok {
					if err := c.Configure(arguments[r.Name()]); err != nil {
						return nil, fmt.Errorf("setting up %s: %w", r.Name(), err)
					}
				}
			}
			var files []string
			for _, f := range pass.Files {
				files = append(files, pass.Fset.File(f.Pos()).Name())
			}
			linter := lint.New(os.ReadFile, len(files))
			failures, err := linter.Lint([][]string{files}, rules, config)
			if err != nil {
				return nil, fmt.Errorf("checking names: %w", err)
			}
			for f := range failures {
				if f.Confidence >= confidence {
					report(pass, f.Position.Start, "%s: %s", f.RuleName, f.Failure)
				}
			}
			return nil, nil
		},
	}
}

// report reports at a position of which only the file and the line are known.
func report(pass *analysis.Pass, at token.Position, format string, args ...any) {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.Pos()); file.Name() == at.Filename {
			pass.Reportf(file.LineStart(at.Line), format, args...)
			return
		}
	}
}
