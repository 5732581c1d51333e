package write

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
)

// finalizersPath is where finalizers are.
const finalizersPath = "/metadata/finalizers"

// finalizersBody is a JSON patch (RFC 6902) that adds a finalizer beside those of others, or removes it. The API server
// refuses it for another object of the same name, and when the finalizers are not what the master has found.
func finalizersBody(p allocate.Patch) ([]byte, error) {
	var finalizers []string
	found := p.Finalizers.Found
	if found != "" {
		if err := json.Unmarshal([]byte(found), &finalizers); err != nil {
			return nil, fmt.Errorf("reading finalizers %.200q: %w", found, err)
		}
	}
	isOurs := func(f string) bool { return f == p.Finalizers.Name }
	if slices.ContainsFunc(finalizers, isOurs) != p.Finalizers.Remove {
		return nil, nil
	}
	now := append(slices.DeleteFunc(finalizers, isOurs), p.Finalizers.Name)
	if p.Finalizers.Remove {
		now = now[:len(now)-1]
	}
	test := operation{"test", finalizersPath, nil}
	if found != "" {
		test.Value = json.RawMessage(found)
	}
	return json.Marshal([]operation{{"test", "/metadata/uid", p.UID}, test, {"add", finalizersPath, now}})
}
