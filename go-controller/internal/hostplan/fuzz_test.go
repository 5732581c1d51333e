package hostplan_test

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// A service entry that is read comes back from its own text, and no input panics.
func FuzzParseServiceEntry(f *testing.F) {
	f.Add("serve TCP 0.0.0.0:30080 to 10.96.0.10:80")
	f.Add("away-share TCP [::]:30080 from fd99::2/128 bucket 7 to [fd99::3]:30080")
	f.Add("allow UDP 192.0.2.7:80 from 198.51.100.0/24")
	f.Fuzz(func(t *testing.T, line string) {
		want, err := hostplan.ParseServiceEntry(line)
		if err != nil {
			return
		}
		if got, err := hostplan.ParseServiceEntry(want.String()); err != nil || got != want {
			t.Errorf("%q: %v came back as %v, %v", line, want, got, err)
		}
	})
}
