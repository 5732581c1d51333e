package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Chart is panels side by side, whose horizontal axes are the same.
type Chart struct {
	X      string    // what the horizontal axes show, with its unit
	At     []float64 // the values on them
	Panels []Panel
}

// Panel is lines over one vertical axis.
type Panel struct {
	Y     string // what the vertical axis shows, with its unit
	Lines []Line
}

// Line is a value for each of Chart.At.
type Line struct {
	Name   string
	Values []float64
}

// Sizes in pixels.
const (
	width  = 340 // of a panel
	height = 320
	left   = 60 // from the edge of a panel to its axis
	right  = 20
	top    = 40
	bottom = 60
	legend = 18 // of a line's name
)

// style has colours that are readable on white and on black. The rest follows the reader's preference.
const style = `<style>
text{font:12px sans-serif;fill:#24292f}
.grid{stroke:#d0d7de}
.axis{stroke:#57606a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#3d444d}.axis{stroke:#9198a1}}
</style>
`

// colour is that of the i-th line of a panel.
func colour(i int) string { return fmt.Sprintf("hsl(%d 70%% 50%%)", (210+i*137)%360) }

// SVG draws the chart.
func (c Chart) SVG() string {
	most := 0
	for _, p := range c.Panels {
		most = max(most, len(p.Lines))
	}
	var b strings.Builder
	w, h := width*len(c.Panels), height+legend*most
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`, w, h)
	b.WriteString("\n" + style)
	for i, p := range c.Panels {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">`+"\n", i*width)
		c.panel(&b, p)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws one panel.
func (c Chart) panel(b *strings.Builder, p Panel) {
	var values []float64
	for _, l := range p.Lines {
		values = append(values, l.Values...)
	}
	x := scale{c.At, left, width - right}
	y := scale{values, height - bottom, top}
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1[2]f"/>`+"\n", left, y.at(v), width-right)
		text(b, left-6, y.at(v)+4, "end", number(v))
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" y1="%d" x2="%.1[1]f" y2="%d"/>`+"\n", x.at(v), height-bottom,
			height-bottom+4)
		text(b, x.at(v), height-bottom+18, "middle", number(v))
	}
	fmt.Fprintf(b, `<path class="axis" fill="none" d="M%d %dV%dH%d"/>`+"\n", left, top, height-bottom, width-right)
	text(b, left-40, top-16, "start", p.Y)
	text(b, (left+width-right)/2, height-bottom+38, "middle", c.X)
	for i, l := range p.Lines {
		c.line(b, l, x, y, colour(i))
		base := float64(height + legend*i)
		fmt.Fprintf(b, `<rect x="%d" y="%.1f" width="12" height="3" fill="%s"/>`+"\n", left, base-5, colour(i))
		text(b, left+18, base, "start", l.Name)
	}
}

// line draws one line, with a dot for each value.
func (c Chart) line(b *strings.Builder, l Line, x, y scale, colour string) {
	var points []string
	for i, v := range l.Values {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(c.At[i]), y.at(v)))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(c.At[i]), y.at(v), colour)
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", colour,
		strings.Join(points, " "))
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(b, []byte(s)) // a Builder takes everything
	b.WriteString("</text>\n")
}

// scale turns values into positions: 0 is at from, the largest tick at to.
type scale struct {
	values   []float64
	from, to float64
}

// ticks lists 0 and round values up to the first that no value exceeds.
func (s scale) ticks() []float64 {
	most := 0.0
	for _, v := range s.values {
		most = max(most, v)
	}
	if most == 0 {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/2)))
	for _, f := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if most/step <= 5 {
			break
		}
		step *= f
	}
	out := []float64{0}
	for out[len(out)-1] < most {
		out = append(out, step*float64(len(out)))
	}
	return out
}

func (s scale) at(v float64) float64 {
	ticks := s.ticks()
	return s.from + (s.to-s.from)*v/ticks[len(ticks)-1]
}

// number prints a tick: 20000 is 20k.
func number(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v/1000, 'g', 6, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
