package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const config = `{"config":{"go_version":"go1.26.8"}}` + "\n" +
		`{"osv":{"id":"GO-1","summary":"panic in net/http"}}` + "\n" + `{"osv":{"id":"GO-2","summary":"loop in x"}}` + "\n"
	const ofGo = `{"finding":{"osv":"GO-1","fixed_version":"v1.26.9","trace":[` +
		`{"module":"stdlib","version":"v1.26.8","function":"Get"}]}}`
	for name, c := range map[string]struct {
		in     string
		strict bool
		code   int
		want   string
	}{
		"nothing":                      {config, false, 0, "No known vulnerability"},
		"a module, not called":         {config + `{"finding":{"osv":"GO-2","trace":[{"module":"x"}]}}`, true, 0, "No known"},
		"the standard library":         {config + ofGo, false, 0, "A newer Go than go1.26.8"},
		"the standard library, strict": {config + ofGo, true, 1, "GO-1  stdlib v1.26.8, mended in v1.26.9: panic in"},
		"a module that is called":      {config + calls, false, 1, "GO-2  x v1, mended in no version yet: loop in x"},
		"both":                         {config + ofGo + calls, false, 1, "GO-2  x"},
		"in Go and in a module":        {config + ofGo + strings.Replace(ofGo, "stdlib", "x", 1), false, 1, "GO-1  x v1.26"},
		"the same, twice":              {config + calls + calls, false, 1, "GO-2  x"},
	} {
		var out strings.Builder
		code, err := judge(strings.NewReader(c.in), &out, c.strict)
		if err != nil || code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d, %v, want %d and %q:\n%s", name, code, err, c.code, c.want, out.String())
		}
	}
	for _, in := range []string{"", "govulncheck: no such file", config + `{"finding":`} {
		if _, err := judge(strings.NewReader(in), &strings.Builder{}, false); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}

const calls = `{"finding":{"osv":"GO-2","trace":[{"module":"x","version":"v1","function":"F"}]}}` + "\n"
