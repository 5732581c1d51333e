package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	svg := Chart{X: "pods", At: []float64{1000, 100000}, Panels: []Panel{
		{Y: "seconds", Lines: []Line{{"a < b", []float64{1, 10}}, {"zero", []float64{0, 0}}}},
		{Y: "MB", Lines: []Line{{"memory", []float64{0, 0}}}},
	}}.SVG()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{
		`viewBox="0 0 680 356"`, ">pods<", ">seconds<", ">MB<", ">100k<", "a &lt; b", `points="62.6,238.0 320.0,40.0"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64][]float64{
		0:      {0, 1},
		10:     {0, 2, 4, 6, 8, 10},
		7:      {0, 2, 4, 6, 8},
		42:     {0, 10, 20, 30, 40, 50},
		100000: {0, 20000, 40000, 60000, 80000, 100000},
	} {
		if got := (scale{values: []float64{most, most / 3}}).ticks(); !slices.Equal(got, want) {
			t.Errorf("ticks up to %v: %v, want %v", most, got, want)
		}
	}
}
