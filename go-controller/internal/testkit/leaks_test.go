package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func leaky(end <-chan struct{}) { <-end }

func TestLeaks(t *testing.T) {
	end := make(chan struct{})
	go leaky(end)
	if err := leaks(0); err == nil || !strings.Contains(err.Error(), "testkit.leaky") {
		t.Errorf("the leak that is found: %v, want testkit.leaky", err)
	}
	close(end)
	if err := leaks(leakTimeout); err != nil {
		t.Error(err)
	}
}

// Every package of the product that starts goroutines is checked for those that its tests leave behind.
func TestEveryPackageIsChecked(t *testing.T) {
	const root = "../.." // go-controller
	starts, checks := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(path, "_test.go")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				starts[filepath.Dir(path)] = starts[filepath.Dir(path)] || !test
			case *ast.CallExpr:
				called, _ := n.Fun.(*ast.SelectorExpr)
				if called == nil {
					break
				}
				starts[filepath.Dir(path)] = starts[filepath.Dir(path)] || !test && called.Sel.Name == "Go"
				checks[filepath.Dir(path)] = checks[filepath.Dir(path)] || test && slices.Contains(
					[]string{"RunTests", "RunWith"}, called.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !starts[filepath.Join(root, "internal", "ovsdb")] {
		t.Error("package ovsdb seems to start no goroutine: what is looked for is wrong")
	}
	for dir := range starts {
		if starts[dir] && !checks[dir] && filepath.Base(dir) != "testkit" {
			t.Errorf("%s starts goroutines: want func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) } in its tests",
				dir)
		}
	}
}
