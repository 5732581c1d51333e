package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"reflect"
	"testing"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"
)

// What the doctors of several nodes said is one document in JSON and in YAML, also if one of them failed.
func TestDoctorsOfSeveralNodes(t *testing.T) {
	for format, options := range map[string][]string{"json": {"-o", "json"}, "yaml": {"--output=yaml", "--timeout=3s"}} {
		if got := formatOf(options); got != format {
			t.Errorf("%q ask for %q, want %s", options, got, format)
		}
		said := map[string]string{"json": `{"ok":true,"problems":0}`, "yaml": "ok: true\nproblems: 0\n"}[format]
		visits := []*visited{{}, {err: errors.New("it is down")}}
		visits[0].stdout.WriteString(said)
		visits[0].stderr.WriteString("a warning\n")
		var out, warnings bytes.Buffer
		c := cli.NewContext(&cli.App{Writer: &out, ErrWriter: &warnings}, flag.NewFlagSet("x", flag.ContinueOnError), nil)
		if err := printVisits(c, []string{"n1", "n2"}, visits, format); err != nil {
			t.Fatal(err)
		}
		var got map[string]map[string]any
		unmarshal := map[string]func() error{"json": func() error { return json.Unmarshal(out.Bytes(), &got) },
			"yaml": func() error { return yaml.Unmarshal(out.Bytes(), &got) }}[format]
		want := map[string]map[string]any{"n1": {"ok": true, "problems": float64(0)}, "n2": {"error": "it is down"}}
		if err := unmarshal(); err != nil || !reflect.DeepEqual(got, want) || warnings.String() != "a warning\n" {
			t.Errorf("%s: %v, %v\n%s", format, got, err, out.String())
		}
		if format == "yaml" && json.Valid(out.Bytes()) {
			t.Errorf("YAML was asked for, and there is JSON: %s", out.String())
		}
	}
	if got := formatOf([]string{"--timeout=3s"}); got != "" {
		t.Errorf("no format: %q", got)
	}
}
