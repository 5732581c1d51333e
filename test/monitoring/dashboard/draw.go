package dashboard

import (
	"fmt"
	"image/color"
	"image/png"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Sizes in pixels. The grid's columns and rows are those of Grafana.
const (
	column, row    = 60, 34
	margin         = 8
	resolution     = 72 // with as many points as pixels
	titleSize      = 15
	labelSize      = 12
	numberSize     = 44
	legendHeight   = labelSize + 6
	maxLegendLines = 3
)

// Mark is something that happened, at a time within the range.
type Mark struct {
	At   time.Time
	Name string
}

// Picture draws rows of panels.
type Picture struct {
	Range
	Marks []Mark
	// Empty has the reason why a panel shows nothing, by the panel's title.
	Empty map[string]string
	fonts text.Handler
}

// ink is the color of text, faint that of lines that help.
func ink() color.Color   { return color.Gray{0x24} }
func faint() color.Color { return color.Gray{0xc8} }

// colorOf is the color of a line: one of eight that people tell apart who do not see all colors (Okabe and Ito).
func colorOf(line int) color.Color {
	all := []uint32{0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000, 0xb8a800}
	c := all[line%len(all)]
	return color.RGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 0xff}
}

// Draw writes a row of panels as a PNG. The panels' data are by their titles.
func (p Picture) Draw(w io.Writer, r Row, data map[string][]Series) error {
	p.fonts = text.Plain{Fonts: font.NewCache(liberation.Collection())}
	top, bottom := r.Panels[0].Place.Y, 0
	for _, panel := range r.Panels {
		bottom = max(bottom, panel.Place.Y+panel.Place.H)
	}
	height := vg.Length((bottom - top) * row)
	img := vgimg.NewWith(vgimg.UseWH(24*column, height), vgimg.UseDPI(resolution))
	canvas := draw.New(img)
	for _, panel := range r.Panels {
		at := panel.Place
		x, y := vg.Length(at.X*column), height-vg.Length((at.Y-top+at.H)*row)
		c := draw.Canvas{Canvas: canvas.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: x, Y: y},
			Max: vg.Point{X: x + vg.Length(at.W*column), Y: y + vg.Length(at.H*row)}}}
		if err := p.panel(draw.Crop(c, margin, -margin, margin, -margin), panel, data[panel.Title]); err != nil {
			return fmt.Errorf("drawing panel %q: %w", panel.Title, err)
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	return encoder.Encode(w, img.Image())
}

// panel draws one panel.
func (p Picture) panel(c draw.Canvas, panel Panel, series []Series) error {
	outline := []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}, c.Min}
	c.StrokeLines(draw.LineStyle{Color: faint(), Width: 1}, outline)
	c = draw.Crop(c, margin, -margin, margin, -margin)
	c.FillText(p.style(titleSize, draw.XLeft, draw.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y}, panel.Title)
	c = draw.Crop(c, 0, 0, 0, -titleSize-margin)
	middle := vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2}
	switch unit := panel.Fields.Defaults.Unit; {
	case len(series) == 0:
		c.FillText(p.style(labelSize, draw.XCenter, draw.YCenter), middle, "No data: "+p.Empty[panel.Title])
		return nil
	case panel.Type == statType:
		points := series[0].Points
		c.FillText(p.style(numberSize, draw.XCenter, draw.YCenter), middle, format(points[len(points)-1].Value, unit))
		return nil
	default:
		c = p.legend(c, series)
		return p.lines(c, series, unit)
	}
}

// lines draws the axes, the marks and a line for each series.
func (p Picture) lines(c draw.Canvas, series []Series, unit string) error {
	chart := plot.New()
	chart.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&chart.X, &chart.Y} {
		axis.LineStyle = draw.LineStyle{Color: faint(), Width: 1}
		axis.Tick.LineStyle, axis.Tick.Length, axis.Padding = axis.LineStyle, 4, 0
	}
	chart.X.Tick.Label, chart.Y.Tick.Label = p.style(labelSize, draw.XCenter, draw.YTop),
		p.style(labelSize, draw.XRight, draw.YCenter)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{0xe8}
	chart.Add(grid)
	for _, m := range p.Marks {
		at := p.since(m.At)
		line, err := plotter.NewLine(plotter.XYs{{X: at, Y: 0}, {X: at, Y: highest(series)}})
		if err != nil {
			return err
		}
		line.LineStyle = draw.LineStyle{Color: faint(), Width: 1, Dashes: []vg.Length{2, 3}}
		chart.Add(line)
	}
	for i, s := range series {
		style := draw.LineStyle{Color: colorOf(i), Width: 1.5}
		for _, part := range p.parts(s.Points) {
			line, err := plotter.NewLine(part)
			if err != nil {
				return err
			}
			line.LineStyle = style
			chart.Add(line)
		}
	}
	chart.X.Min, chart.X.Max = 0, p.End.Sub(p.Begin).Seconds()
	chart.Y.Min, chart.Y.Max = 0, highest(series)
	chart.X.Tick.Marker, chart.Y.Tick.Marker = minutes{}, units(unit)
	chart.Draw(c)
	return nil
}

// parts cuts a series where values are missing. A part of one value becomes a short line.
func (p Picture) parts(points []Point) (out []plotter.XYs) {
	var last time.Time
	for i, point := range points {
		if i == 0 || point.At.Sub(last) > p.Step*3/2 {
			out = append(out, plotter.XYs{{X: p.since(point.At.Add(-p.Step / 2)), Y: point.Value}})
		}
		part := &out[len(out)-1]
		*part = append(*part, plotter.XY{X: p.since(point.At), Y: point.Value})
		last = point.At
	}
	return out
}

func (p Picture) since(t time.Time) float64 { return max(0, t.Sub(p.Begin).Seconds()) }

// legend draws the names of the series at the bottom, and returns what is left of the canvas.
func (p Picture) legend(c draw.Canvas, series []Series) draw.Canvas {
	style := p.style(labelSize, draw.XLeft, draw.YCenter)
	var places []vg.Point // from the top, in lines
	x, line, all := vg.Length(0), 0, len(series)
	for i, s := range series {
		w := style.Width(s.Legend) + 34
		if x > 0 && x+w > c.Max.X-c.Min.X {
			x, line = 0, line+1
		}
		if line == maxLegendLines {
			series = series[:i] // no room for more names
			break
		}
		places = append(places, vg.Point{X: x, Y: vg.Length(line)})
		x += w
	}
	lines, shown := vg.Length(places[len(places)-1].Y)+1, len(places)
	if shown < all {
		lines++
		c.FillText(style, vg.Point{X: c.Min.X, Y: c.Min.Y + legendHeight/2}, fmt.Sprintf("and %d more", all-shown))
	}
	for i, s := range series {
		at := vg.Point{X: c.Min.X + places[i].X, Y: c.Min.Y + (lines-places[i].Y)*legendHeight - legendHeight/2}
		c.StrokeLine2(draw.LineStyle{Color: colorOf(i), Width: 3}, at.X, at.Y, at.X+18, at.Y)
		c.FillText(style, vg.Point{X: at.X + 23, Y: at.Y}, s.Legend)
	}
	return draw.Crop(c, 0, 0, lines*legendHeight+4, 0)
}

// style is a style of text.
func (p Picture) style(size vg.Length, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: ink(), Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, XAlign: x,
		YAlign: y, Handler: p.fonts}
}
