package replica

import (
	"fmt"
	"slices"
	"testing"
)

// TestSymmetricDifference: what a set is after its difference, sorted also if it was not before.
func TestSymmetricDifference(t *testing.T) {
	for name, c := range map[string]struct{ set, difference, want []string }{
		"comes":         {[]string{"a", "c"}, []string{"b"}, []string{"a", "b", "c"}},
		"goes":          {[]string{"a", "b", "c"}, []string{"b"}, []string{"a", "c"}},
		"both, unlike":  {[]string{"b", "d"}, []string{"e", "b", "a"}, []string{"a", "d", "e"}},
		"into nothing":  {nil, []string{"b", "a"}, []string{"a", "b"}},
		"all go":        {[]string{"a", "b"}, []string{"b", "a"}, []string{}},
		"was unsorted":  {[]string{"c", "a"}, []string{"b"}, []string{"a", "b", "c"}},
		"nothing to do": {[]string{"a"}, nil, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, difference := slices.Clone(c.set), slices.Clone(c.difference)
			if got := symmetricDifference(set, difference); !slices.Equal(got, c.want) {
				t.Errorf("symmetricDifference(%v, %v) = %v, want %v", c.set, c.difference, got, c.want)
			}
			if !slices.Equal(set, c.set) || !slices.Equal(difference, c.difference) {
				t.Errorf("the arguments were changed: %v, %v", set, difference)
			}
		})
	}
}

// BenchmarkSymmetricDifference: one member comes to a set of 10,000.
func BenchmarkSymmetricDifference(b *testing.B) {
	set := make([]string, 10_000)
	for i := range set {
		set[i] = fmt.Sprintf("10.%d.%d.%d", i/40_000, i/200, i%200)
	}
	slices.Sort(set)
	comes := []string{"10.0.77.250"}
	for b.Loop() {
		symmetricDifference(set, comes)
	}
}
