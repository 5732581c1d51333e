package networks

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// repository is the path from here to the root of the repository.
const repository = "../../.."

// TestNamedTests checks that the tests which the checklist names are there, with their subtests.
func TestNamedTests(t *testing.T) {
	read := map[string]source{}
	for _, g := range checklist() {
		for _, c := range g.cases {
			for _, named := range c.tests {
				if named.file == specsPage {
					if !passes(t, named.subtest) {
						t.Errorf("%s: %s: %s has no such spec that passes: %s", g.title, c.what, specsPage, named.subtest)
					}
					continue
				}
				dir := filepath.Dir(named.file)
				if read[dir] == nil {
					read[dir] = sourceOf(t, filepath.Join(repository, dir))
				}
				if err := read[dir].find(named); err != nil {
					t.Errorf("%s: %s: %v", g.title, c.what, err)
				}
			}
		}
	}
}

// passes is true if a spec of Kubernetes that passes has a text in its name.
func passes(t *testing.T, part string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, specsPage))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n## Pass\n")
	section, _, _ := strings.Cut(after, "\n## ")
	for item := range strings.SplitSeq(section, "\n- ") {
		if strings.Contains(strings.Join(strings.Fields(item), " "), part) {
			return true
		}
	}
	return false
}

// source is the functions and methods in the test files of a directory, by their names.
type source map[string][]function

type function struct {
	file string
	decl *ast.FuncDecl
}

func sourceOf(t *testing.T, dir string) source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	s := source{}
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				s[f.Name.Name] = append(s[f.Name.Name], function{filepath.Base(name), f})
			}
		}
	}
	return s
}

// find returns an error if a test is not in its file, or does not run its subtest.
func (s source) find(named test) error {
	var at []ast.Node
	for _, f := range s[named.name] {
		if f.file == filepath.Base(named.file) && f.decl.Recv == nil {
			at = append(at, f.decl.Body)
		}
	}
	if len(at) == 0 {
		return fmt.Errorf("%s has no function %s", named.file, named.name)
	}
	if named.subtest == "" {
		return nil
	}
	if named.name == goldenTest { // it has a subtest for each file
		_, err := os.Stat(filepath.Join(repository, filepath.Dir(named.file), "testdata", named.subtest))
		return err
	}
	for name := range strings.SplitSeq(named.subtest, "/") {
		var below []ast.Node
		for _, n := range at {
			below = append(below, s.subtests(n, name, map[string]bool{})...)
		}
		if len(below) == 0 {
			return fmt.Errorf("%s of %s: no call of Run with %q", named.name, named.file, named.subtest)
		}
		at = below
	}
	return nil
}

// subtests returns what the subtests of a name run, which code starts itself or by the functions that it calls.
func (s source) subtests(code ast.Node, name string, seen map[string]bool) (out []ast.Node) {
	ast.Inspect(code, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if startsSubtest(call) {
			if isNamed(call.Args[0], name) {
				out = append(out, s.bodies(call.Args[1])...)
			}
			return false
		}
		if called := nameOf(call.Fun); !seen[called] {
			seen[called] = true
			for _, f := range s[called] {
				out = append(out, s.subtests(f.decl.Body, name, seen)...)
			}
		}
		return true
	})
	return out
}

// startsSubtest is true for a call of the method Run of a testing.T, which code here calls t or T.
func startsSubtest(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Run" && len(call.Args) == 2 && strings.EqualFold(nameOf(method.X), "t")
}

// isNamed is true for the literal of a name, or for an expression that is no literal if the name is "*".
func isNamed(arg ast.Expr, name string) bool {
	literal, ok := arg.(*ast.BasicLit)
	if !ok {
		return name == "*"
	}
	text, err := strconv.Unquote(literal.Value)
	return err == nil && text == name
}

// bodies is the code of a function literal, or of the functions that an expression names.
func (s source) bodies(e ast.Expr) (out []ast.Node) {
	if literal, ok := e.(*ast.FuncLit); ok {
		return []ast.Node{literal.Body}
	}
	for _, f := range s[nameOf(e)] {
		out = append(out, f.decl.Body)
	}
	return out
}

// nameOf is the last name of an expression such as a.b.c.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// TestFind checks that tests which are not there are noticed.
func TestFind(t *testing.T) {
	s := sourceOf(t, filepath.Join(repository, "test/e2e/networks"))
	for named, want := range map[test]string{
		primary("tenants/*/within"):                                            "",
		primary("tenants/two namespaces/policy"):                               "",
		further("policies/*"):                                                  "",
		inE2E("networks/claims_test.go", "TestPrimary", ""):                    "has no function",
		inE2E("networks/primary_test.go", "TestSecondary", ""):                 "has no function",
		golden("multi-network-policies.in.yaml"):                               "has no function",
		primary("within"):                                                      "no call of Run",
		primary("tenants/red/within"):                                          "no call of Run",
		primary("tenants/two namespaces/no policy"):                            "no call of Run",
		inE2E("networks/policies_test.go", "TestFurther", "policies/*/layer2"): "no call of Run",
	} {
		err := s.find(named)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", named, err, want)
		}
	}
}
