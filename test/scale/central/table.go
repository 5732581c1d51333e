package central

import (
	"slices"
	"strings"
)

// Line is a line of a table of results.
type Line[R any] struct {
	What   string
	Figure func(R) string
}

// Table is results in Markdown: a column for each release, with a figure for each of its results in each cell.
func Table[R any](results []R, version func(R) string, lines []Line[R]) string {
	versions := distinct(results, version)
	var b strings.Builder
	b.WriteString("| measured | OVN " + strings.Join(versions, " | OVN ") + " |\n|---" + strings.Repeat("|---",
		len(versions)) + "|\n")
	for _, l := range lines {
		b.WriteString("| " + l.What)
		for _, v := range versions {
			var figures []string
			for _, r := range results {
				if version(r) == v {
					figures = append(figures, l.Figure(r))
				}
			}
			b.WriteString(" | " + strings.Join(figures, " / "))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// Sizes is what distinguishes the results of a release, such as "100 / 250".
func Sizes[R any](results []R, size func(R) string) string {
	return strings.Join(distinct(results, size), " / ")
}

// distinct is the values of results, each once, in their order.
func distinct[R any](results []R, value func(R) string) (out []string) {
	for _, r := range results {
		if v := value(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
