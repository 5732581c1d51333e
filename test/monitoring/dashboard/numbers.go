package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// format is a value with its unit, as Grafana names units.
func format(v float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	switch {
	case unit == "percentunit":
		return number(v*100) + " %"
	case unit == "s" && v != 0 && math.Abs(v) < 1:
		return number(v*1000) + " ms"
	case unit == "s":
		return number(v) + " s"
	case unit == "bytes" && v >= 1<<30:
		return number(v/(1<<30)) + " GiB"
	case unit == "bytes" && v >= 1<<20:
		return number(v/(1<<20)) + " MiB"
	case unit == "bytes":
		return number(v/(1<<10)) + " KiB"
	case unit == "ops", unit == "reqps", unit == "pps":
		return number(v) + "/s"
	default:
		return number(v)
	}
}

// highest is the upper end of an axis for series.
func highest(series []Series) (out float64) {
	for _, s := range series {
		for _, p := range s.Points {
			out = max(out, p.Value)
		}
	}
	if out <= 0 {
		return 1
	}
	return out * 1.08
}

// units are ticks with a unit.
type units string

// Ticks implements plot.Ticker.
func (unit units) Ticks(low, high float64) []plot.Tick {
	out := plot.DefaultTicks{}.Ticks(low, high)
	for i := range out {
		if !out[i].IsMinor() {
			out[i].Label = format(out[i].Value, string(unit))
		}
	}
	return out
}

// minutes are ticks of an axis of seconds.
type minutes struct{}

// Ticks implements plot.Ticker.
func (minutes) Ticks(low, high float64) (out []plot.Tick) {
	const most = 7 // ticks
	step := time.Minute.Seconds()
	for (high-low)/step > most {
		step *= 2
	}
	for at := low; at <= high; at += step {
		out = append(out, plot.Tick{Value: at, Label: fmt.Sprintf("%.0f min", at/time.Minute.Seconds())})
	}
	return out
}
