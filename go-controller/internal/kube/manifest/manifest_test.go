package manifest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/manifest"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// files writes files into a directory of the test and returns it.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func stdin(text string) *manifest.Manifests {
	return manifest.Read(kinds.All(), []string{manifest.Stdin}, strings.NewReader(text))
}

func refs(m *manifest.Manifests) []string {
	var out []string
	for _, o := range m.Objects {
		out = append(out, o.Ref().String())
	}
	return out
}

func wantRefs(t *testing.T, m *manifest.Manifests, want ...string) {
	t.Helper()
	if got := refs(m); !slices.Equal(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
}

// wantErrors compares errors or warnings, whole.
func wantTexts[T any](t *testing.T, what string, got []T, text func(T) string, want ...string) {
	t.Helper()
	var texts []string
	for _, g := range got {
		texts = append(texts, text(g))
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, texts, want)
	}
}

func same(s string) string { return s }

func clean(t *testing.T, m *manifest.Manifests) {
	t.Helper()
	wantTexts(t, "errors", m.Errors, error.Error)
	wantTexts(t, "warnings", m.Warnings, same)
	wantTexts(t, "problems", m.Problems, cluster.Problem.Error)
}

const (
	node = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  uid: u1\n"
	web  = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: a\nspec:\n  nodeName: n1\n"
)

func TestManifestForms(t *testing.T) {
	for what, text := range map[string]string{
		"documents":               node + "---\n" + web,
		"separators everywhere":   "---\n---\n# nothing\n---\n" + node + "--- # the pod\n" + web + "...\n---\n",
		"windows line ends":       strings.ReplaceAll(node+"---\n"+web, "\n", "\r\n"),
		"byte order mark":         "\xef\xbb\xbf" + node + "---\n" + web,
		"content after separator": "--- {apiVersion: v1, kind: Node, metadata: {name: n1, uid: u1}}\n---\n" + web,
		"List": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: " +
			"web, namespace: a}, spec: {nodeName: n1}}\n- {apiVersion: v1, kind: Node, metadata: {name: n1, uid: u1}}\n",
		"typed lists without kind": "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: web, namespace: a}\n  " +
			"spec: {nodeName: n1}\n---\napiVersion: v1\nkind: NodeList\nmetadata: {}\nitems:\n- metadata: {name: n1, uid: u1}\n",
		"JSON": `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node",` +
			`"metadata":{"name":"n1","uid":"u1"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"a"},` +
			`"spec":{"nodeName":"n1"}}]}`,
		"JSON with tabs, one after another": "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Node\",\n\t\"metadata\": " +
			"{\"name\": \"n1\", \"uid\": \"u1\"}\n}\n" +
			"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"a\"}," +
			"\"spec\":{\"nodeName\":\"n1\"}}",
		"the other order": web + "---\n" + node,
	} {
		t.Run(what, func(t *testing.T) {
			m := stdin(text)
			clean(t, m)
			wantRefs(t, m, "Node n1", "Pod a/web")
			if len(m.Objects) == 2 {
				if n := m.Objects[0].(*cluster.Node); n.UID != "u1" {
					t.Errorf("node %+v, want UID u1", n)
				}
				if p := m.Objects[1].(*cluster.Pod); p.Node != "n1" {
					t.Errorf("pod %+v, want node n1", p)
				}
			}
			if len(m.Ignored) != 0 {
				t.Errorf("ignored %v", m.Ignored)
			}
		})
	}
}

func TestManifestFiles(t *testing.T) {
	dir := files(t, map[string]string{
		"b.yaml": node, "a/pod.yml": web,
		"a/b/c/svc.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"None"}}`,
		"README.md":      "not: [a manifest", "a/pod.yaml.orig": "not: [a manifest",
	})
	m := manifest.Read(kinds.All(), []string{dir, manifest.Stdin},
		strings.NewReader("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"))
	clean(t, m)
	wantRefs(t, m, "Namespace a", "Node n1", "Pod a/web", "Service default/s")

	explicit := files(t, map[string]string{"dump.txt": node})
	m = manifest.Read(kinds.All(), []string{filepath.Join(explicit, "dump.txt")}, nil)
	clean(t, m)
	wantRefs(t, m, "Node n1")

	empty := files(t, map[string]string{"README.md": ""})
	m = manifest.Read(kinds.All(), []string{empty, filepath.Join(empty, "nope.yaml"), filepath.Join(dir, "b.yaml")}, nil)
	wantRefs(t, m, "Node n1")
	wantTexts(t, "errors", m.Errors, error.Error,
		"reading manifests: directory "+empty+" holds no *.yaml, *.yml or *.json file",
		"reading manifests: stat "+filepath.Join(empty, "nope.yaml")+": no such file or directory")
}

// Kinds that the network does not depend on are counted, not errors.
func TestManifestIgnoredKinds(t *testing.T) {
	m := stdin(node + `---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: ConfigMap},
  {apiVersion: example.com/v1, kind: Node, metadata: {name: UPPER}}]}
---
{apiVersion: example.com/v1, kind: BlackList}
`)
	clean(t, m)
	wantRefs(t, m, "Node n1")
	want := []manifest.IgnoredKind{{APIVersion: "apps/v1", Kind: "Deployment", Count: 1},
		{APIVersion: "example.com/v1", Kind: "BlackList", Count: 1},
		{APIVersion: "example.com/v1", Kind: "Node", Count: 1}, {APIVersion: "v1", Kind: "ConfigMap", Count: 2}}
	if !slices.Equal(m.Ignored, want) {
		t.Errorf("ignored %v, want %v", m.Ignored, want)
	}
}

// What is broken names file, document and line, and what is wrong; the rest is
// read on.
func TestManifestErrors(t *testing.T) {
	m := stdin(`apiVersion: v1
kind: Node
metadata:
  name: n1
---
apiVersion: v1
kind: Pod
  metadata: [
---
just text
---
- a
- b
---
kind: Pod
metadata: {name: x}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: a}, spec: {nodeName: 7}}
---
{apiVersion: v1, kind: Pod, metadata: {namespace: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: WEB_1, namespace: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: a.b}}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: ok}
- metadata: {name: "a/b"}
- kind: PodList
  apiVersion: v1
  items: []
- 7
---
{apiVersion: v1, kind: Namespace, metadata: {name: nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn}}
---
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 99999999999}]}}
---
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}
`)
	wantRefs(t, m, "Node n1", "Pod default/ok")
	const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
		"and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
		"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	wantTexts(t, "errors", m.Errors, error.Error,
		`stdin: document 2 (line 5): parsing: yaml: line 8: mapping values are not allowed in this context`,
		`stdin: document 3 (line 9): want a Kubernetes object, a mapping with apiVersion and kind, got "just text"`,
		`stdin: document 4 (line 11): want a Kubernetes object, a mapping with apiVersion and kind, got ["a","b"]`,
		`stdin: document 5 (line 14): want a Kubernetes object, a mapping with apiVersion and kind, got {"kind":"Pod",`+
			`"metadata":{"name":"x"}}`,
		`stdin: document 6 (line 17): Pod a/web: json: cannot unmarshal number into Go struct field `+
			`PodSpec.spec.nodeName of type string`,
		`stdin: document 7 (line 19): Pod a/: metadata.name is missing`,
		`stdin: document 8 (line 21): Pod a/WEB_1: metadata.name "WEB_1": `+subdomain,
		`stdin: document 9 (line 23): Pod a.b/web: metadata.namespace "a.b": must not contain dots`,
		`stdin: document 10 (line 25): item 2: Pod a/b: metadata.name "a/b": `+subdomain,
		`stdin: document 10 (line 25): item 3: a PodList inside of a PodList: want the objects themselves`,
		`stdin: document 10 (line 25): item 4: want a Kubernetes object, a mapping with apiVersion and kind, got 7`,
		`stdin: document 11 (line 35): Namespace nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: `+
			`metadata.name "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn": must be no more than 63 `+
			`characters`,
		`stdin: document 12 (line 37): Service s: json: cannot unmarshal number 99999999999 into Go struct field `+
			`ServicePort.spec.ports.port of type int32`,
		`stdin: document 13 (line 39): parsing: yaml: line 40: did not find expected ',' or '}'`,
	)
}

func TestManifestWarnings(t *testing.T) {
	m := stdin("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  nodename: n1\n  nodeName: n1\n  nodeName: n2\n")
	wantTexts(t, "errors", m.Errors, error.Error)
	wantTexts(t, "warnings", m.Warnings, same,
		`stdin: yaml: unmarshal errors: line 7: key "nodeName" already set in map`,
		`stdin: Pod web: unknown field "spec.nodename"`)
	wantRefs(t, m, "Pod default/web")
	if p := m.Objects[0].(*cluster.Pod); p.Node != "n2" {
		t.Errorf("node %q, want the last value, n2", p.Node)
	}
}

// One object in two places: the same twice is harmless, two different ones are
// an error, and neither is a matter of luck.
func TestManifestDuplicates(t *testing.T) {
	dir := files(t, map[string]string{"a.yaml": node + "---\n" + web, "b.yaml": web,
		"c.yaml": strings.Replace(node, "u1", "u2", 1)})
	at := func(f string) string { return filepath.Join(dir, f) }
	for _, order := range [][]string{{"a.yaml", "b.yaml", "c.yaml"}, {"c.yaml", "b.yaml", "a.yaml"}} {
		var paths []string
		for _, f := range order {
			paths = append(paths, at(f))
		}
		m := manifest.Read(kinds.All(), paths, nil)
		wantRefs(t, m, "Pod a/web")
		wantTexts(t, "errors", m.Errors, error.Error,
			"Node n1 is given twice with different contents, want it once: "+at("a.yaml")+
				": document 1 (line 1) and "+at("c.yaml")+": neither is used")
		wantTexts(t, "warnings", m.Warnings, same,
			"Pod a/web is given twice with the same contents: "+at("a.yaml")+": document 2 (line 6) and "+at("b.yaml"))
	}
}

// An object in a version of its API that is not read is an error. The same kind of another group is none of ours.
func TestManifestVersions(t *testing.T) {
	m := stdin("apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: s}\n---\n" +
		"apiVersion: example.test/v1\nkind: Node\nmetadata: {name: n}\n")
	wantRefs(t, m)
	wantTexts(t, "errors", m.Errors, error.Error,
		`stdin: document 1 (line 1): apiVersion "discovery.k8s.io/v1beta1" of kind EndpointSlice, want `+
			`"discovery.k8s.io/v1": `+
			`the object is not used`)
	if len(m.Ignored) != 1 || m.Ignored[0].APIVersion != "example.test/v1" {
		t.Errorf("ignored %v, want the Node of another group", m.Ignored)
	}
}

func TestManifestProblems(t *testing.T) {
	m := stdin("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.96.0.1}\n")
	wantRefs(t, m, "Service default/s")
	if len(m.Problems) != 1 || m.Problems[0].Reason != "NoServicePorts" {
		t.Errorf("problems %v, want one NoServicePorts", m.Problems)
	}
}

// Whatever is given, nothing panics, and every document is either used,
// counted, or an error.
func FuzzManifests(f *testing.F) {
	f.Add(node + "---\n" + web)
	f.Add("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[null,{},[]]}")
	f.Add("--- {\n---\n...\n&a [*a, *a]\n")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nkind: Pod\napiVersion: v1\nmetadata: {name: *b}\n")
	schema := nb.NewSchema()
	translators := all.Translators(schema)
	f.Fuzz(func(t *testing.T, text string) {
		m := stdin(text)
		for i, o := range m.Objects {
			if o.Ref().Name.Name == "" {
				t.Errorf("object %d of %q has no name", i, text)
			}
		}
		for _, err := range m.Errors {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("error of %q is not one line: %q", text, err)
			}
		}
		_, errs := offline.NewOf(config.DefaultCluster(), schema, translators, m.Objects).Database()
		if len(errs) != 0 {
			t.Errorf("rows of %q can't be made: %v", text, errs)
		}
	})
}

// What was read can be decoded with the limits that the settings among it ask for, and again with others.
func TestLimitsOfPolicies(t *testing.T) {
	const text = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np, namespace: shop}
spec: {podSelector: {}, ingress: [{}, {}, {}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: northbound-settings, namespace: kube-system}
data: {max-policy-rules: "2"}
`
	read := manifest.Load(kinds.All(), []string{manifest.Stdin}, strings.NewReader(text))
	if got := read.Settings()["max-policy-rules"]; got != "2" {
		t.Errorf("max-policy-rules %q, want 2", got)
	}
	for limit, want := range map[int]int{2: 2, 1: 1, 0: 3} {
		m := read.Decode(kinds.Within(config.Policies{MaxRules: limit}))
		if len(m.Objects) != 1 || len(m.Errors) != 0 {
			t.Fatalf("objects %v, errors %v", refs(m), m.Errors)
		}
		np, ok := m.Objects[0].(*cluster.NetworkPolicy)
		if !ok || len(np.Ingress.Rules) != want || (len(m.Problems) == 1) != (want < 3) {
			t.Errorf("limit %d: %+v, problems %v, want %d rules", limit, m.Objects[0], m.Problems, want)
		}
	}
}
