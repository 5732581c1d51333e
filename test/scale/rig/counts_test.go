package rig

import "testing"

func TestSum(t *testing.T) {
	const text = `# HELP a_total help
# TYPE a_total counter
a_total{verb="PATCH",resource="pods",code="200"} 3
a_total{verb="PATCH",resource="nodes",code="200"} 4
a_total{verb="PATCH",resource="pods",code="409"} 1e+02
a_total_more{verb="PATCH"} 1000
b_total 7
`
	for _, c := range []struct {
		name   string
		labels []string
		want   int
	}{
		{"a_total", nil, 107},
		{"a_total", []string{`verb="PATCH"`, `resource="pods"`}, 103},
		{"a_total", []string{`code="200"`}, 7},
		{"a_total", []string{`code="500"`}, 0},
		{"b_total", nil, 7},
		{"c_total", nil, 0},
	} {
		if got := exposition(text).sum(c.name, c.labels...); got != c.want {
			t.Errorf("sum of %s with %q is %d, want %d", c.name, c.labels, got, c.want)
		}
	}
}
