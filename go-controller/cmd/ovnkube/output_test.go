package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What a command prints as YAML is what it prints as JSON.
func TestYAML(t *testing.T) {
	const cluster, policies = docsDir + "/cluster.yaml", docsDir + "/policies.yaml"
	for _, args := range [][]string{
		{"version"},
		{"explain", "svc/shop/web", "-f", cluster},
		{"explain", "pod/shop/db-0", "-f", cluster},
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
		if out := ovnkube(t.Context(), nil, append(args, "-o", "xml")...); out.exit != 1 ||
			!strings.Contains(out.stderr, `--output "xml": want t`) || !strings.Contains(out.stderr, ", json or yaml") {
			t.Errorf("%q -o xml: %s", args, out)
		}
	}
}
