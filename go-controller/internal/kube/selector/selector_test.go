package selector

import (
	"strings"
	"testing"
)

func TestParseNode(t *testing.T) {
	node := map[string]string{"role": "edge", "x.io/zone": ""}
	for in, want := range map[string]bool{
		"role=edge": true, "role==edge": true, "role": true, "role=core": false, "role!=core": true, "!role": false,
		"!retired":              true,
		"role in (edge,border)": true, "role notin (edge)": false, "x.io/zone=": true, "role=edge,!retired": true,
		"role=edge,retired": false,
	} {
		s, err := ParseNode("--l", in)
		if err != nil || s.Accepts(node) != want {
			t.Errorf("%q: %v, %v; want %v", in, s, err, want)
			continue
		}
		if again, err := ParseNode("--l", s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%q prints %q, which reads %v, %v", in, s, again, err)
		}
	}
	if s, err := ParseNode("--l", ""); s != nil || err != nil {
		t.Errorf("an empty one is %v, %v", s, err)
	}
	for _, in := range []string{"=b", "role=a b", "role in edge", "-x=y", "role=edge,",
		"role=" + strings.Repeat("x", 64)} {
		if s, err := ParseNode("--l", in); err == nil || !strings.Contains(err.Error(), "parsing --l ") ||
			!strings.Contains(err.Error(), "want a label selector such as") {
			t.Errorf("%q: %v, %v", in, s, err)
		}
	}
}
