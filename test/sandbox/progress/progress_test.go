package progress

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
)

// TestSteps holds what a person reads at the end of steps, and that an error
// goes through unchanged.
func TestSteps(t *testing.T) {
	var out bytes.Buffer
	log := New(&out)
	first := log.Begin("first")
	first.Detail("half of %s", "it")
	if err := first.End(nil); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := log.Begin("second").End(broken); !errors.Is(err, broken) {
		t.Errorf("End: %v, want %v", err, broken)
	}
	log.Total("both")
	want := `^ +\d+\.\d s  first\n +\d+\.\d s  second: not done\n +\d+\.\d s  in all: both\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("log %q, want %s", out.String(), want)
	}
}
