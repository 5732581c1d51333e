package all

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/northbound-net/northbound/go-controller/internal/"

// sources parses the files of a package that are no tests.
func sources(t *testing.T, dir string) (out []*ast.File) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// plansOf is the packages below hostplan whose Plan a package names.
func plansOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range sources(t, dir) {
		rooms := map[string]string{} // by the name in the file
		for _, i := range f.Imports {
			if room, is := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"hostplan/"); is {
				rooms[room] = room
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is && s.Sel.Name == "Plan" {
				if x, is := s.X.(*ast.Ident); is && rooms[x.Name] != "" {
					out[rooms[x.Name]] = true
				}
			}
			return true
		})
	}
	return out
}

// isRoom tells whether the package has a Plan of the form of Room.
func isRoom(t *testing.T, dir string) bool {
	t.Helper()
	for _, f := range sources(t, dir) {
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is || fn.Recv != nil || fn.Name.Name != "Plan" || len(fn.Type.Params.List) != 2 {
				continue
			}
			if s, is := fn.Type.Params.List[0].Type.(*ast.SelectorExpr); is && s.Sel.Name == "Facts" {
				return true
			}
		}
	}
	return false
}

// Every room is in the list.
func TestRoomsAreListed(t *testing.T) {
	listed := plansOf(t, ".")
	dirs, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range dirs {
		if d.IsDir() && d.Name() != "all" && isRoom(t, filepath.Join("..", d.Name())) {
			found[d.Name()] = true
		}
	}
	if len(found) == 0 || !maps.Equal(found, listed) || len(listed) != len(Rooms()) {
		t.Errorf("rooms are %v, Rooms has the %d of %v",
			slices.Sorted(maps.Keys(found)), len(Rooms()), slices.Sorted(maps.Keys(listed)))
	}
}

// The agent, the commands by hand and the doctor ask the list. None of them has a
// list of its own, which would lack the next room. The agent and the doctor ask the
// gateway's room besides: they report what is wrong with it by itself.
func TestUsersAskTheList(t *testing.T) {
	for user, besides := range map[string][]string{"agent": {"gateway"}, "byhand": nil, "doctor": {"gateway"}} {
		asked := plansOf(t, filepath.Join("..", "..", user))
		if !asked["all"] {
			t.Errorf("%s does not ask all.Plan", user)
		}
		delete(asked, "all")
		for _, ok := range append(besides, "serviceport") { // which has another form
			delete(asked, ok)
		}
		if len(asked) > 0 {
			t.Errorf("%s asks %v itself", user, slices.Sorted(maps.Keys(asked)))
		}
	}
}
