package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/bundle"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Manifests is what a set of manifest files says, as `kubectl get -o yaml` or `-o json` writes them. It does not depend
// on the order of files, documents or list items.
type Manifests struct {
	Objects  []cluster.Object  // by kind and name, each once
	Problems []cluster.Problem // parts of Objects that were left out
	Errors   []error           // files, documents and objects that could not be used
	Warnings []string          // what a Kubernetes API server would drop or merge
	Ignored  []IgnoredKind     // objects of kinds that the network does not depend on
	Settings config.Settings   // what a master has published, if the ConfigMap is among the objects
}

// IgnoredKind counts the objects of one kind that were not used.
type IgnoredKind struct {
	APIVersion, Kind string
	Count            int
}

// Stdin is the path that means standard input.
const Stdin = "-"

// Read is what files say of objects of the kinds.
func Read(rows []kinds.Kind, paths []string, stdin io.Reader) *Manifests {
	return Load(rows, paths, stdin).Decode(rows)
}

// Files is what was read from manifest files. The settings among them may have the limits with which they are to be
// decoded.
type Files struct{ read *reader }

// Settings is what a master has published, nil if the ConfigMap is not among the objects.
func (f Files) Settings() config.Settings { return f.read.out.Settings }

// Decode decodes the objects with the limits of these rows, which are of the kinds that were loaded.
func (f Files) Decode(rows []kinds.Kind) *Manifests { return f.read.result(rows) }

// Load reads objects of the kinds from files, from directories (recursively: *.yaml, *.yml, *.json), from bundles and,
// for the path "-", from stdin. What is broken becomes an error that names file, document and line. The rest is read
// on.
func Load(rows []kinds.Kind, paths []string, stdin io.Reader) Files {
	r := &reader{kinds: rows, ignored: map[IgnoredKind]int{}, seen: map[cluster.Ref][]located{}}
	for _, p := range paths {
		if p == Stdin {
			r.read("stdin", func() ([]byte, error) { return io.ReadAll(stdin) })
			continue
		}
		if bundle.Is(p) {
			r.read(p, func() ([]byte, error) {
				var b bytes.Buffer
				err := bundle.Copy(p, bundle.Objects, &b)
				return b.Bytes(), err
			})
			continue
		}
		for _, f := range r.files(p) {
			r.read(f, func() ([]byte, error) { return os.ReadFile(f) })
		}
	}
	return Files{r}
}

// reader collects what was read so far.
type reader struct {
	kinds   []kinds.Kind
	out     Manifests
	ignored map[IgnoredKind]int // by kind, with Count 0
	seen    map[cluster.Ref][]located
}

// located is one object and where it was.
type located struct {
	at       place
	raw      kinds.Object // nil unless its kind is Limited
	object   cluster.Object
	problems []cluster.Problem
}

// place is where in the input something is.
type place struct {
	source    string
	document  int // from 1
	line      int // on which the document starts, from 1
	item      int // of a list, from 1; 0 when the document is the object
	documents int // in the file
}

// String is "pods.yaml: document 2 (line 17), item 3", without the parts of which there is only one.
func (p place) String() string {
	s := p.source
	if p.documents > 1 {
		s += fmt.Sprintf(": document %d (line %d)", p.document, p.line)
	}
	if p.item > 0 {
		s += fmt.Sprintf(": item %d", p.item)
	}
	return s
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.source, q.source), cmp.Compare(p.document, q.document), cmp.Compare(p.item, q.item))
}

func (r *reader) fail(err error) { r.out.Errors = append(r.out.Errors, err) }

// files lists the manifests at path.
func (r *reader) files(path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		r.fail(fmt.Errorf("reading manifests: %w", err))
		return nil
	}
	if !info.IsDir() {
		return []string{path}
	}
	var out []string
	walk := func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			r.fail(fmt.Errorf("reading manifests: %w", err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)) {
			out = append(out, p)
		}
		return nil
	}
	if err := filepath.WalkDir(path, walk); err != nil {
		r.fail(fmt.Errorf("reading manifests: %w", err))
	}
	if len(out) == 0 {
		r.fail(fmt.Errorf("reading manifests: directory %s holds no *.yaml, *.yml or *.json file", path))
	}
	return out
}

// read takes one file in.
func (r *reader) read(source string, content func() ([]byte, error)) {
	raw, err := content()
	if err != nil {
		r.fail(fmt.Errorf("reading manifests: %w", err))
		return
	}
	docs := documents(raw)
	for i, d := range docs {
		at := place{source: source, document: i + 1, line: d.line, documents: len(docs)}
		js, warnings, err := d.json()
		for _, w := range warnings {
			r.warn(at, w)
		}
		if err != nil {
			r.fail(fmt.Errorf("%s: %w", at, err))
			continue
		}
		r.object(at, js, typeMeta{})
	}
}

func (r *reader) warn(at place, w string) {
	r.out.Warnings = append(r.out.Warnings, fmt.Sprintf("%s: %s", at, w))
}

// within is the object with the limits of its kind's row.
func (o located) within(rows []kinds.Kind) located {
	if o.raw == nil {
		return o
	}
	if k, ok := kinds.Find(rows, o.object.Ref().Kind); ok {
		o.object, o.problems = k.Decode(o.raw)
	}
	return o
}

// result settles objects that were given more than once, and sorts everything.
func (r *reader) result(rows []kinds.Kind) *Manifests {
	out := Manifests{Errors: slices.Clone(r.out.Errors), Warnings: slices.Clone(r.out.Warnings),
		Settings: r.out.Settings}
	refs := slices.SortedFunc(maps.Keys(r.seen), func(a, b cluster.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cluster.CompareNames(a.Name, b.Name))
	})
	for _, ref := range refs {
		var found []located
		for _, o := range r.seen[ref] {
			found = append(found, o.within(rows))
		}
		slices.SortFunc(found, func(a, b located) int { return a.at.compare(b.at) })
		first := found[0]
		if i := slices.IndexFunc(found, func(o located) bool { return !o.object.Equal(first.object) }); i >= 0 {
			out.Errors = append(out.Errors, fmt.Errorf("%s is given twice with different contents, want it once: "+
				"%s and %s: neither is used", ref, first.at, found[i].at))
			continue
		}
		if len(found) > 1 {
			out.Warnings = append(out.Warnings,
				fmt.Sprintf("%s is given twice with the same contents: %s and %s", ref, first.at, found[1].at))
		}
		out.Objects = append(out.Objects, first.object)
		out.Problems = append(out.Problems, first.problems...)
	}
	for k, n := range r.ignored {
		k.Count = n
		out.Ignored = append(out.Ignored, k)
	}
	slices.SortFunc(out.Ignored, func(a, b IgnoredKind) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return &out
}

// errNotAnObject tells that a document has no kind.
var errNotAnObject = errors.New("want a Kubernetes object, a mapping with apiVersion and kind")
