package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/northbound-net/northbound/test/scale/networks"
)

// Report has the measurements.
type Report struct {
	Machine    string
	Lines      []Line
	Noise      []string // phases in which other programs used more than maxNoise
	Violations []string // wrong counts
	Scaled     *Scaled  // what phase scale measured, if it ran
	Northd     *Northds // what phase northd measured, if it ran
	Networks   *networks.Results
}

// Line is a measurement.
type Line struct {
	Phase, What string
	Figure      string
	Beside      string // what to compare it with, with a value
	Ratio       string
}

func (r *Report) add(phase, what, format string, args ...any) *Line {
	r.Lines = append(r.Lines, Line{Phase: phase, What: what, Figure: fmt.Sprintf(format, args...)})
	return &r.Lines[len(r.Lines)-1]
}

func (l *Line) beside(format string, args ...any) *Line {
	l.Beside = fmt.Sprintf(format, args...)
	return l
}

func (l *Line) ratio(figure, limit float64) *Line {
	l.Ratio = fmt.Sprintf("%.2f", figure/limit)
	return l
}

// maxNoise is the share of the machine that other programs may use. Beyond it, times say little.
const maxNoise = 0.1

// disturbed records how much other programs ran meanwhile, if that was much.
func (r *Report) disturbed(phase string, c cost) {
	if n := c.noise(); n > maxNoise {
		r.Noise = append(r.Noise, fmt.Sprintf("%s: other programs used %.0f %% of the processors: these times say little",
			phase, 100*n))
	}
}

func (r *Report) violate(format string, args ...any) {
	r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintln(w, r.Machine)
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tmeasured\tfigure\tbeside\tratio")
	previous := ""
	for _, l := range r.Lines {
		phase := l.Phase
		if phase == previous {
			phase = ""
		} else if previous != "" {
			fmt.Fprintln(t, "\t\t\t\t")
		}
		previous = l.Phase
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", phase, l.What, l.Figure, l.Beside, l.Ratio)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if r.Scaled != nil && len(r.Scaled.Sizes) > 0 {
		fmt.Fprintf(w, "\n%s", r.Scaled.Table())
	}
	if r.Northd != nil && len(r.Northd.Results) > 0 {
		fmt.Fprintf(w, "\n%s", r.Northd.Table())
	}
	if r.Networks != nil && len(r.Networks.Results) > 0 {
		fmt.Fprintf(w, "\n%s", r.Networks.Table())
	}
	for _, n := range r.Noise {
		fmt.Fprintln(w, "\nNOISE:", n)
	}
	for _, v := range r.Violations {
		fmt.Fprintln(w, "\nWRONG:", v)
	}
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

// perSecond is a rate.
func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// perPod returns the CPU time for each pod.
func perPod(total time.Duration, pods int) string {
	return fmt.Sprintf("%.2f ms", float64(total)/float64(time.Millisecond)/float64(pods))
}
