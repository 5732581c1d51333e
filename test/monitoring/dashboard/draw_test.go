package dashboard

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
	"time"
)

// TestDraw draws a line, a number, and a panel without data, and looks for each in the picture.
func TestDraw(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	p := Picture{Range: Range{Begin: begin, End: begin.Add(5 * time.Minute), Step: time.Second},
		Marks: []Mark{{begin.Add(time.Minute), "fault"}}, Empty: map[string]string{"nothing": "made without"}}
	panel := func(title, kind string, x int) Panel {
		out := Panel{Title: title, Type: kind, Place: Place{x, 3, 8, 8}}
		out.Fields.Defaults.Unit = "s"
		return out
	}
	var line Series
	line.Legend = "of a node with a long name"
	for i := range 240 {
		if i < 100 || i > 130 { // a gap
			line.Points = append(line.Points, Point{begin.Add(time.Duration(i) * time.Second), float64(i%60) / 100})
		}
	}
	data := map[string][]Series{"number": {line}}
	for range 11 {
		data["lines"] = append(data["lines"], line)
		for i := range line.Points {
			line.Points[i].Value += 0.01
		}
	}
	const lines = "timeseries"
	some := Row{"a row", []Panel{panel("lines", lines, 0), panel("number", statType, 8), panel("nothing", lines, 16)}}
	var out bytes.Buffer
	if err := p.Draw(&out, some, data); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	size := picture.Bounds()
	if size.Dx() != 24*column || size.Dy() != 8*row {
		t.Errorf("the picture has the size %v", size)
	}
	third := func(i int) image.Rectangle { return image.Rect(i*8*column, 2*row, (i+1)*8*column, 7*row) }
	for name, look := range map[string]struct {
		panel int
		color color.Color
		least int
	}{"line": {0, colorOf(0), 20}, "mark": {0, faint(), 20}, "number": {1, ink(), 20}, "reason": {2, ink(), 5}} {
		if n := count(picture, third(look.panel), look.color); n < look.least {
			t.Errorf("%d points in the color of the %s, want %d", n, name, look.least)
		}
	}
	if n := count(picture, third(2), colorOf(0)); n > 0 {
		t.Errorf("%d points of a line without data", n)
	}
}

// count is how many points of a rectangle have a color.
func count(picture image.Image, r image.Rectangle, c color.Color) (out int) {
	for x := r.Min.X; x < r.Max.X; x++ {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			if color.RGBAModel.Convert(picture.At(x, y)) == color.RGBAModel.Convert(c) {
				out++
			}
		}
	}
	return out
}
