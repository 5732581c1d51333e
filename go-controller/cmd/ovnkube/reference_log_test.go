package main

import (
	"go/ast"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logLine is a call that logs: its level, its message and its keys.
type logLine struct{ level, message, keys string }

// logPage lists what the daemons log.
func logPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference: log lines\n\n" + generated + wrap("", "", "Messages are constant, so you can search for "+
		"them. What differs is in the keys. `--log-format json` prints a line as an object with the same keys, beside "+
		"`time`, `level` and `msg`."))
	lines := map[string][]logLine{}
	for _, dir := range packages(t) {
		for _, l := range logLines(t, dir) {
			lines[l.level] = append(lines[l.level], l)
		}
	}
	for _, level := range []string{"Error", "Warn", "Info", "Debug"} {
		b.WriteString("\n## " + level + "\n\n")
		var items []string
		for _, l := range lines[level] {
			text := "`" + l.message + "`"
			if l.keys != "" {
				text += ": " + l.keys
			}
			items = append(items, wrap("- ", "  ", text))
		}
		slices.Sort(items)
		b.WriteString(strings.Join(slices.Compact(items), ""))
	}
	if len(lines["Warn"]) < 10 {
		t.Errorf("%d lines of level Warn found, want at least 10", len(lines["Warn"]))
	}
	return b.String()
}

// packages lists the directories of the product's code.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	root := filepath.Join(repository, "go-controller")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() != "testkit" && d.Name() != "testdata" {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// logLines finds the calls of Info, Warn, Error and Debug of something called
// log, or Log, or k8sLog.
func logLines(t *testing.T, dir string) (lines []logLine) {
	logger, levels := regexp.MustCompile(`(?i)log(ger)?$`), []string{"Error", "Warn", "Info", "Debug"}
	for _, f := range sources(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(levels, method.Sel.Name) || !logger.MatchString(nameOf(method.X)) {
				return true
			}
			message, ok := literal(call.Args[0])
			if !ok {
				t.Errorf("%s: a log line whose message is not constant", dir)
				return true
			}
			var keys []string
			for i := 1; i < len(call.Args); i += 2 {
				if key, ok := literal(call.Args[i]); ok {
					keys = append(keys, "`"+key+"`")
				}
			}
			lines = append(lines, logLine{method.Sel.Name, message, strings.Join(keys, ", ")})
			return true
		})
	}
	return lines
}

// nameOf is the last name of an expression such as s.log.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// Every reason of an Event that the code has is explained in events.md, and no
// other.
func TestEvents(t *testing.T) {
	page := readFile(t, filepath.Join(referenceDir, "events.md"))
	want := map[string]bool{}
	for _, dir := range packages(t) {
		for _, f := range sources(t, dir) {
			ast.Inspect(f, func(n ast.Node) bool {
				for _, reason := range reasons(n) {
					want[reason] = true
				}
				return true
			})
		}
	}
	have := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(page, -1) {
		have[m[1]] = true
	}
	if !maps.Equal(have, want) {
		t.Errorf("docs/reference/events.md explains\n%v\nthe code has\n%v",
			slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
	}
}

// reasons are those that a piece of code names: constants called reason..., the
// field Reason of a value, and what is given to a function called bad.
func reasons(n ast.Node) (out []string) {
	reason := regexp.MustCompile(`^[A-Z][a-z]+([A-Z]+[a-z]*)+$`)
	add := func(e ast.Expr) {
		if s, ok := literal(e); ok && reason.MatchString(s) {
			out = append(out, s)
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, v := range n.Values {
			if strings.HasPrefix(strings.ToLower(n.Names[i].Name), "reason") {
				add(v)
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
			add(n.Value)
		}
	case *ast.CallExpr:
		if nameOf(n.Fun) == "bad" {
			add(n.Args[0])
		}
	}
	return out
}
