package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/northbound-net/northbound/test/lint/source"
)

const (
	lineLimit     = 120 // characters; a tab is one
	functionLimit = 60  // lines between the braces; tests have no limit
	fileLimit     = 400 // lines of Go
)

// checkFile returns what exceeds a limit in a file, which is called name in it.
func checkFile(path, name string) ([]string, error) {
	var exempt func(string) bool
	switch filepath.Ext(path) {
	case ".go":
		exempt = func(string) bool { return false }
	case ".md":
		exempt = verbatim()
	default:
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []string
	if filepath.Ext(path) == ".go" {
		generated, long, err := functions(name, text)
		if err != nil || generated {
			return nil, err
		}
		if n := strings.Count(string(text), "\n"); n > fileLimit {
			found = append(found, fmt.Sprintf("%s: the file has %d lines, want at most %d", name, n, fileLimit))
		}
		found = append(found, long...)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\n")
		if n := utf8.RuneCountInString(line); !exempt(line) && n > lineLimit {
			found = append(found, fmt.Sprintf("%s:%d: the line has %d characters, want at most %d", name, number, n, lineLimit))
		}
	}
	return found, nil
}

// verbatim returns a function that is told the lines of a Markdown file one after
// another, and tells whether a line is in a code fence or a table.
func verbatim() func(line string) bool {
	fence := ""
	return func(line string) bool {
		line = strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
			return true
		}
		for _, mark := range []string{"```", "~~~"} {
			if strings.HasPrefix(line, mark) {
				fence = mark
			}
		}
		return fence != "" || strings.HasPrefix(line, "|")
	}
}

// functions returns whether a Go file was generated, and its functions that are
// too long.
func functions(name string, text []byte) (generated bool, long []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return false, nil, fmt.Errorf("parsing a Go file: %w", err)
	}
	if source.Generated(file) || strings.HasSuffix(name, "_test.go") {
		return source.Generated(file), nil, nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		first := set.Position(f.Body.Lbrace).Line
		if n := set.Position(f.Body.Rbrace).Line - first - 1; n > functionLimit {
			long = append(long, fmt.Sprintf("%s:%d: function %s has %d lines, want at most %d",
				name, set.Position(f.Pos()).Line, f.Name.Name, n, functionLimit))
		}
	}
	return false, long, nil
}
