package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"
)

// What a command prints as YAML is what it prints as JSON. A table is what it prints without --output.
func TestYAML(t *testing.T) {
	const cluster, policies = docsDir + "/cluster.yaml", docsDir + "/policies.yaml"
	for _, args := range [][]string{
		{"version"},
		{"explain", "svc/shop/web", "-f", cluster},
		{"explain", "pod/shop/db-0", "-f", cluster},
		{"explain", "selector", "774ae86f7e1efd715b79", "-f", policies}, // pods app=web of namespace shop
		{"policy", "check", "10.0.0.1", "10.0.0.2:80", "-f", policies},
		{"policy", "matrix", "-f", policies},
		{"policy", "diff", "-f", policies, "--from", cluster},
	} {
		var said [2]any
		for i, format := range []string{"json", "yaml"} {
			out := ovnkube(t.Context(), nil, append(args, "-o", format)...)
			if err := yaml.Unmarshal([]byte(out.stdout), &said[i]); err != nil || said[i] == nil {
				t.Fatalf("%q -o %s: %v\n%s", args, format, err, out)
			}
			if isJSON := json.Valid([]byte(out.stdout)); isJSON != (format == "json") {
				t.Errorf("%q -o %s: JSON is %t:\n%s", args, format, isJSON, out)
			}
		}
		if !reflect.DeepEqual(said[0], said[1]) {
			t.Errorf("%q: as JSON %v, as YAML %v", args, said[0], said[1])
		}
		readable, table := ovnkube(t.Context(), nil, args...), ovnkube(t.Context(), nil, append(args, "-o", asTable)...)
		if readable != table {
			t.Errorf("%q -o table: %s", args, firstDifference(table.String(), readable.String()))
		}
		if out := ovnkube(t.Context(), nil, append(args, "-o", "xml")...); out.exit != 1 ||
			!strings.Contains(out.stderr, `--output "xml": want t`) || !strings.Contains(out.stderr, ", json or yaml") {
			t.Errorf("%q -o xml: %s", args, out)
		}
	}
}

// Every command with --output accepts table, json and yaml, and no other word. A bad flag ends those early that would
// ask servers or this machine. It is reported after a bad --output, or beside it.
func TestOutputFormats(t *testing.T) {
	// The formats of translate are those of ovn-nbctl and ovsdb-server.
	others := map[string]string{"translate": "show (as ovn-nbctl show), json, ovsdb "}
	all := withOutput("", newApp().Commands)
	if len(all) < 20 {
		t.Fatalf("%d commands have --output, want 20 or more", len(all))
	}
	for path, c := range all {
		if want := others[path]; want != "" {
			if usage := helpOf(t, strings.Fields(path)).Flags[1].String(); !strings.Contains(usage, want) {
				t.Errorf("%s: --help says %q, want %q", path, usage, want)
			}
			continue
		}
		args := append(strings.Fields(path), outputArguments(path, c)...)
		for _, format := range []string{asTable, "json", "yaml"} {
			if out := ovnkube(t.Context(), nil, append(args, "-o", format)...); strings.Contains(out.stderr, "--output") ||
				!strings.Contains(out.stderr, "loud") && path != "version" {
				t.Errorf("%q -o %s: %s", args, format, out)
			}
		}
		if out := ovnkube(t.Context(), nil, append(args, "-o", "xml")...); !strings.Contains(out.stderr, `--output "xml"`) {
			t.Errorf("%q -o xml: %s", args, out)
		}
	}
}

// withOutput finds the commands that have --output, by the words that name them.
func withOutput(parent string, all []*cli.Command) map[string]*cli.Command {
	out := map[string]*cli.Command{}
	for _, c := range all {
		path := strings.TrimSpace(parent + " " + c.Name)
		if hasFlagNamed(c, "output") {
			out[path] = c
		}
		maps.Copy(out, withOutput(path, c.Subcommands))
	}
	return out
}

// outputArguments are enough for a command to read --output, and too few for it to succeed.
func outputArguments(path string, c *cli.Command) []string {
	switch path {
	case "version":
		return nil
	case "doctor", "preflight":
		return []string{"--encap-type=loud"}
	case "explain":
		return []string{"--acl=-", "--log-level=loud"}
	case "policy check":
		return []string{"10.0.0.1", "10.0.0.2", "--log-level=loud"}
	case "policy diff":
		return []string{"-f=-", "--log-level=loud"}
	}
	name := map[string][]string{namespaced: {"a/b"}, optionalNamespace: {"a/b"}, "NETWORK/NODE": {"a/b"}, "": nil}
	args, known := name[c.ArgsUsage]
	if !known {
		args = []string{"a"}
	}
	return append(args, "--log-level=loud")
}
