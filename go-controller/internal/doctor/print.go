package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText prints a diagnosis for a person: a line for each check, and the commands under
// a problem.
func (d Diagnosis) WriteText(w io.Writer) error {
	var b strings.Builder
	notChecked := 0
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%-11s  %-20s  %s\n", f.Status, f.Check, f.Message)
		for _, line := range f.Fix {
			fmt.Fprintf(&b, "%-11s  %-20s    %s\n", "", "", line)
		}
		if f.Status == NotChecked {
			notChecked++
		}
	}
	fmt.Fprintf(&b, "node %s: %s, %d of %d checks not made\n", d.Node, count(d.Problems, "problem"), notChecked,
		len(d.Findings))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON prints a diagnosis for a program.
func (d Diagnosis) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(d)
}

// count is "no problems", "1 problem", "2 problems".
func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
