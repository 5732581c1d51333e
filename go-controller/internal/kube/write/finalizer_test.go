package write

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
)

// A patch of finalizers keeps those of others, and applies only to what was found.
func TestFinalizersBody(t *testing.T) {
	const (
		uid  = `[{"op":"test","path":"/metadata/uid","value":"u"},`
		test = `{"op":"test","path":"/metadata/finalizers"`
		add  = `{"op":"add","path":"/metadata/finalizers","value":`
	)
	for _, c := range []struct {
		found  string
		remove bool
		want   string
	}{
		{"", false, uid + test + `,"value":null},` + add + `["mine"]}]`},
		{`["a"]`, false, uid + test + `,"value":["a"]},` + add + `["a","mine"]}]`},
		{`["mine"]`, false, ""},
		{`["mine"]`, true, uid + test + `,"value":["mine"]},` + add + `[]}]`},
		{`["a","mine","b"]`, true, uid + test + `,"value":["a","mine","b"]},` + add + `["a","b"]}]`},
		{`["a"]`, true, ""},
	} {
		got, err := finalizersBody(allocate.Patch{UID: "u",
			Finalizers: &allocate.Finalizers{Found: c.found, Name: "mine", Remove: c.remove}})
		if err != nil || string(got) != c.want {
			t.Errorf("%s, remove %v: error %v, patch\n%s\nwant\n%s", c.found, c.remove, err, got, c.want)
		}
	}
	if got, err := finalizersBody(allocate.Patch{Finalizers: &allocate.Finalizers{Found: "{"}}); err == nil {
		t.Errorf("finalizers that are no JSON: %s", got)
	}
}
