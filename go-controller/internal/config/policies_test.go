package config

import (
	"strconv"
	"testing"
)

// A negative limit is an error that names its flag. No limit is not.
func TestPolicyLimits(t *testing.T) {
	c := DefaultCluster()
	c.Policies = Policies{}
	if err := c.Validate(); err != nil {
		t.Errorf("no limits: %v", err)
	}
	c.Policies = Policies{-1, -2, -3, -4, -5, -6}
	const want = "--max-policy-rules -1: want a number such as 1024, or 0 for no limit\n" +
		"--max-policy-selectors -2: want a number such as 256, or 0 for no limit\n" +
		"--max-policy-ranges -3: want a number such as 4096, or 0 for no limit\n" +
		"--max-policy-ports -4: want a number such as 1024, or 0 for no limit\n" +
		"--max-namespace-policy-selectors -5: want a number such as 2000, or 0 for no limit\n" +
		"--max-namespace-policy-terms -6: want a number such as 20000, or 0 for no limit"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The master publishes the limits, for the commands that judge policies. No agent takes them.
func TestPolicyLimitsArePublished(t *testing.T) {
	c := DefaultCluster()
	c.Policies = Policies{MaxRules: 11, MaxSelectors: 12, MaxRanges: 13, MaxNamespaceSelectors: 14, MaxNamespaceTerms: 15}
	published, taken := c.Settings(), DefaultNode().Settings()
	for flag, value := range map[string]int{"max-policy-rules": 11, "max-policy-selectors": 12, "max-policy-ranges": 13,
		"max-policy-ports": 0, "max-namespace-policy-selectors": 14, "max-namespace-policy-terms": 15} {
		if got := published[flag]; got != strconv.Itoa(value) {
			t.Errorf("%s is published as %q, want %d", flag, got, value)
		}
		if _, is := taken[flag]; is {
			t.Errorf("an agent takes %s", flag)
		}
	}
}
