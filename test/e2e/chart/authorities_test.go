package chart

import (
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// newAuthorities replaces both authorities with the commands of the page. Afterwards everything has certificates of the
// new ones, and a new pod gets its network.
func (c *installed) newAuthorities(t *testing.T) {
	const page, heading = "../../../docs/operate/security.md", "### In a cluster of pods"
	authority := func(name string) string {
		return c.kubectl(t, "get", "secret", name, "--output", `jsonpath={.data.tls\.crt}`)
	}
	before := map[string]string{"ovn-nb-ca": "", "ovn-sb-ca": ""}
	for name := range before {
		before[name] = authority(name)
	}
	c.operator(t).does(t, machines.Blocks(t, page, heading)[0])
	c.settled(t)
	for name, old := range before {
		if now := authority(name); now == old || now == "" {
			t.Errorf("Secret %s has %q, want another authority than %q", name, now, old)
		}
	}
	c.newPod(t, "after-new-authorities")
}
