package nb

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteTo prints the plan, one line per row and one per column:
//
//   - Logical_Switch_Port default_web-0  (Pod default/web-0, port)
//     addresses  + "0a:58:0a:f4:01:03 10.244.1.3"
//
// with + for what is added, ~ for what is changed and - for what goes.
func (p Plan) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, p.String())
	return int64(n), err
}

// String is what WriteTo prints.
func (p Plan) String() string {
	var b strings.Builder
	for _, r := range p.Rows {
		fmt.Fprintf(&b, "%s %s %s  (%s, %s)\n", r.Verb, r.Key.Table, orUUID(r.Label, r.UUID), r.Key.Owner, r.Key.Role)
		for _, c := range r.Columns {
			c.print(&b)
		}
	}
	for _, m := range p.Members {
		if m.Implied {
			continue
		}
		sign := "+"
		if m.Remove {
			sign = "-"
		}
		in := m.Slot.In
		fmt.Fprintf(&b, "~ %s %s  %s  %s %s %s\n", in.Table, orUUID(m.In, in.UUID), m.Slot.Column, sign,
			m.Key.Table, orUUID(m.Label, m.UUID))
	}
	return b.String()
}

// String is the sign of the verb: +, ~ or -.
func (v Verb) String() string { return [...]string{"+", "~", "-"}[v] }

func orUUID(label, uuid string) string {
	if label == "" {
		return uuid
	}
	return label
}

func (c ColumnChange) print(b *strings.Builder) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "      %s  %s\n", c.Column, fmt.Sprintf(format, args...))
	}
	if c.Old != nil || c.New != nil {
		switch {
		case isZero(c.Old):
			line("+ %s", value(c.New))
		case c.New == nil:
			line("- %s", value(c.Old))
		default:
			line("~ %s -> %s", value(c.Old), value(c.New))
		}
	}
	for _, x := range c.Remove {
		line("- %q", x)
	}
	for _, x := range c.Add {
		line("+ %q", x)
	}
	for _, k := range c.Drop {
		if _, again := c.Put[k]; !again {
			line("- %s=%s", k, c.shown(c.Was[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.Put)) {
		if was, changed := c.Was[k]; changed {
			line("~ %s=%s -> %s", k, c.shown(was), c.shown(c.Put[k]))
		} else {
			line("+ %s=%s", k, c.shown(c.Put[k]))
		}
	}
}

// shown is a map's value: text in quotes, a number without.
func (c ColumnChange) shown(v string) string {
	if c.Numbers {
		return v
	}
	return strconv.Quote(v)
}

func isZero(v any) bool { return v == nil || v == "" || v == 0 || v == false }

func value(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}
