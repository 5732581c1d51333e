package sandbox

import (
	"slices"
	"testing"
)

// TestFlags checks flags with and without values: the chart refuses arguments that are no flags.
func TestFlags(t *testing.T) {
	have := flags([]string{"--leader-elect", "--gateway-cidrs", "172.30.0.77/32", "--gateway-mode", "", "--mtu=0"})
	want := []string{"--leader-elect", "--gateway-cidrs=172.30.0.77/32", "--gateway-mode=", "--mtu=0"}
	if !slices.Equal(have, want) {
		t.Errorf("flags %q, want %q", have, want)
	}
	if have := flags(nil); have == nil || len(have) != 0 {
		t.Errorf("no arguments are %#v, want an empty list, as the chart's values have it", have)
	}
}
