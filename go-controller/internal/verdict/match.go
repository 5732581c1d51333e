package verdict

import (
	"fmt"
	"slices"
	"strconv"
)

// match is the match of an ACL, parsed.
type match struct {
	root expr
	// compares are the comparisons in root.
	compares []*compare
}

// names is what the $names and @names of matches stand for on one switch.
type names struct {
	sets   map[string][]constant // the addresses of each Address_Set
	groups map[string][]string   // the switch's ports in each Port_Group that has one
}

// void tells why OVN ignores the match on a switch, "" when it doesn't.
func (m *match) void(in names) string {
	for _, c := range m.compares {
		for _, s := range c.operand.sets {
			addrs, there := in.sets[s]
			if !there {
				return "there is no address set " + s
			}
			for _, a := range addrs {
				if a.width() > c.field.width {
					return fmt.Sprintf("address set %s has an address of %d bits, and %s has %d", s, a.width(), c.name,
						c.field.width)
				}
			}
		}
		for _, g := range c.operand.groups {
			if _, there := in.groups[g]; !there {
				return fmt.Sprintf("there is no port group %s with a port on the switch", g)
			}
		}
	}
	return ""
}

// matches tells whether the match, which must not be void, holds for a packet.
func (m *match) matches(p *Packet, in names) bool { return m.root.holds(p, in) }

// expr is a Boolean expression.
type expr interface {
	holds(p *Packet, in names) bool
	// may tells whether it holds for the packet with some destination port.
	may(p *Packet, in names) bool
}

type (
	all     []expr
	anyOf   []expr
	boolean bool
	is      func(*Packet) bool
)

func (l all) holds(p *Packet, in names) bool {
	return !slices.ContainsFunc(l, func(e expr) bool { return !e.holds(p, in) })
}

func (l anyOf) holds(p *Packet, in names) bool {
	return slices.ContainsFunc(l, func(e expr) bool { return e.holds(p, in) })
}

func (b boolean) holds(*Packet, names) bool { return bool(b) }

func (f is) holds(p *Packet, _ names) bool { return f(p) }

func (l all) may(p *Packet, in names) bool {
	return !slices.ContainsFunc(l, func(e expr) bool { return !e.may(p, in) })
}

func (l anyOf) may(p *Packet, in names) bool {
	return slices.ContainsFunc(l, func(e expr) bool { return e.may(p, in) })
}

func (b boolean) may(*Packet, names) bool { return bool(b) }

func (f is) may(p *Packet, _ names) bool { return f(p) }

// compare is a comparison of a field.
type compare struct {
	name    string
	field   *field
	op      string // == != < <= > >=
	operand operand
}

// operand is what a field is compared with: one constant, or several that count as a set.
type operand struct {
	at        int
	set       bool // in braces
	constants []constant
	strings   []string
	sets      []string // names of address sets
	groups    []string // names of port groups
}

// text tells whether the operand consists of strings.
func (o *operand) text() bool { return len(o.strings)+len(o.groups) > 0 }

// single tells whether the operand is one constant that no braces enclose.
func (o *operand) single() bool { return !o.set && len(o.constants) == 1 }

// truth is the value of the literals 0 and 1, which are expressions of their own.
func (o *operand) truth() (value, ok bool) {
	if !o.single() {
		return false, false
	}
	c := o.constants[0]
	return c.value.lo == 1, c.form == decimal && !c.masked && c.value.compare(number{lo: 1}) <= 0
}

func (c *compare) holds(p *Packet, in names) bool {
	equal, empty := c.equals(p, in)
	switch {
	case empty: // OVN drops the protocol that the field implies together with the comparison
		return c.op == "!="
	case !c.field.requires(p):
		return false
	case c.op == "==":
		return equal
	case c.op == "!=":
		return !equal
	}
	order := c.field.number(p).compare(c.operand.constants[0].value)
	switch c.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (c *compare) may(p *Packet, in names) bool {
	switch c.name {
	case "tcp.dst", "udp.dst", "sctp.dst":
		return c.field.requires(p) || c.holds(p, in)
	}
	return c.holds(p, in)
}

// equals tells whether the field's value is one of the operand's, and whether the operand has none.
func (c *compare) equals(p *Packet, in names) (equal, empty bool) {
	empty = len(c.operand.constants)+len(c.operand.strings) == 0
	if c.field.width == 0 {
		port := c.field.port(p)
		equal = slices.Contains(c.operand.strings, port)
		for _, g := range c.operand.groups {
			equal = equal || slices.Contains(in.groups[g], port)
			empty = empty && len(in.groups[g]) == 0
		}
		return equal && port != "", empty
	}
	value := c.field.number(p)
	among := func(list []constant) bool {
		return slices.ContainsFunc(list, func(k constant) bool { return k.equals(value) })
	}
	equal = among(c.operand.constants)
	for _, s := range c.operand.sets {
		equal = equal || among(in.sets[s])
		empty = empty && len(in.sets[s]) == 0
	}
	return equal, empty
}

// newCompare makes a comparison, or tells why OVN refuses it. It is the opposite of the comparison when negated.
func newCompare(f token, op token, o operand, negated bool) (*compare, error) {
	c := &compare{name: f.text, field: fieldOf(f.text), op: op.text, operand: o}
	if o.text() != (c.field.width == 0) {
		kinds := map[bool]string{true: "names of ports", false: "numbers or addresses"}
		return nil, errorAt(o.at, "%s is compared with %s, want %s", f.text, kinds[o.text()], kinds[!o.text()])
	}
	for _, k := range o.constants {
		if k.width() > c.field.width {
			return nil, errorAt(o.at, "a constant of %d bits, and %s has %d", k.width(), f.text, c.field.width)
		}
	}
	if negated {
		c.op = opposite(c.op)
	}
	ordered := op.text != "==" && op.text != "!="
	switch {
	case ordered && !o.single():
		return nil, errorAt(op.at, "%s compares with a set, want == or !=", op.text)
	case ordered && o.constants[0].masked:
		return nil, errorAt(op.at, "%s compares with a mask, want == or !=", op.text)
	case c.field.nominal && c.op != "==":
		return nil, errorAt(f.at, "%s can only be compared for equality", f.text)
	}
	return c, nil
}

// opposite is the operator that holds when op doesn't.
func opposite(op string) string {
	return map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}[op]
}

// turned is the operator that holds when the operands of op change places.
func turned(op string) string {
	return map[string]string{"==": "==", "!=": "!=", "<": ">", ">=": "<=", "<=": ">=", ">": "<"}[op]
}

// shown is a match as errors quote it.
func shown(match string) string {
	const most = 300
	if len(match) > most {
		match = match[:most] + "..."
	}
	return strconv.Quote(match)
}
