package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// maxDepth is how deep OVN lets parentheses be nested.
const maxDepth = 100

// parser reads a match by recursive descent. It moves ! down to the comparisons, as OVN does: the protocol that a field
// implies is not negated.
type parser struct {
	text     string
	token    token // the next one
	next     int   // where the text after the token begins
	depth    int
	negated  bool // within an odd number of !
	compares []*compare
}

// parse reads a match.
func parse(text string) (*match, error) {
	m, err := parseMatch(text)
	if err != nil {
		return nil, fmt.Errorf("match %s: %w", shown(text), err)
	}
	return m, nil
}

func parseMatch(text string) (*match, error) {
	p := &parser{text: text}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.token.kind != end {
		return nil, p.unexpected("&&, || or the end")
	}
	return &match{root, p.compares}, nil
}

func (p *parser) advance() (err error) {
	p.token, p.next, err = scan(p.text, p.next)
	return err
}

func (p *parser) unexpected(want string) error {
	return errorAt(p.token.at, "%s, want %s", p.token, want)
}

// sees tells whether the next token is one of these operators.
func (p *parser) sees(operators ...string) bool {
	return p.token.kind == operator && slices.Contains(operators, p.token.text)
}

// accept skips an operator if it is the next token.
func (p *parser) accept(operator string) (found bool, err error) {
	if !p.sees(operator) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) relational() bool { return p.sees("==", "!=", "<", "<=", ">", ">=") }

// expression reads one operand, or several between which is the same of && and ||.
func (p *parser) expression() (expr, error) {
	e, err := p.unary()
	if err != nil || !p.sees("&&", "||") {
		return e, err
	}
	operator, list := p.token.text, []expr{e}
	for p.sees(operator) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if e, err = p.unary(); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if p.sees("&&", "||") {
		return nil, errorAt(p.token.at, "&& and || need parentheses when used together")
	}
	return p.join(operator == "&&", list), nil
}

// join is the conjunction or the disjunction of a list, the other one when negated: its members are negated already.
func (p *parser) join(conjunction bool, list []expr) expr {
	if conjunction != p.negated {
		return all(list)
	}
	return anyOf(list)
}

func (p *parser) unary() (expr, error) {
	at := p.token.at
	not, err := p.accept("!")
	if err != nil {
		return nil, err
	}
	if !not {
		e, _, err := p.primary()
		return e, err
	}
	p.negated = !p.negated
	e, atomic, err := p.primary()
	p.negated = !p.negated
	if err == nil && !atomic {
		return nil, errorAt(at, "! needs parentheses around a comparison")
	}
	return e, err
}

// primary reads an expression without && and || outside parentheses. It is atomic when ! may precede it.
func (p *parser) primary() (e expr, atomic bool, err error) {
	switch {
	case p.sees("("):
		e, err = p.parentheses()
		return e, true, err
	case p.token.kind == name && predicate(p.token.text) != nil:
		t := p.token
		bit := strings.HasPrefix(t.text, "ct.") // a bit of a field, not a predicate in the sense of ovn-sb(5)
		if p.negated && !bit {
			return nil, false, errorAt(t.at, "%s can only be tested without !", t.text)
		}
		negated, holds := p.negated, predicate(t.text)
		return is(func(q *Packet) bool { return holds(q) != negated }), true, p.advance()
	case p.token.kind == name:
		e, err = p.comparison()
		return e, false, err
	}
	return p.constantFirst()
}

func (p *parser) parentheses() (expr, error) {
	if p.depth == maxDepth {
		return nil, errorAt(p.token.at, "more than %d nested parentheses", maxDepth)
	}
	p.depth++
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	closed, err := p.accept(")")
	if err == nil && !closed {
		err = p.unexpected(`&&, || or ")"`)
	}
	return e, err
}

// comparison reads: field operator operand.
func (p *parser) comparison() (expr, error) {
	f, err := p.field()
	if err != nil {
		return nil, err
	}
	op, err := p.relation()
	if err != nil {
		return nil, err
	}
	o, err := p.operand()
	if err != nil {
		return nil, err
	}
	return p.compare(f, op, o)
}

// constantFirst reads 0 or 1, or an operand and then: operator field, perhaps with another operator and operand after
// it.
func (p *parser) constantFirst() (e expr, atomic bool, err error) {
	o, err := p.operand()
	if err != nil {
		return nil, false, err
	}
	if truth, ok := o.truth(); ok && !p.relational() {
		return boolean(truth != p.negated), true, nil
	}
	op, err := p.relation()
	if err != nil {
		return nil, false, err
	}
	f, err := p.field()
	if err != nil {
		return nil, false, err
	}
	first := op
	first.text = turned(op.text)
	if e, err = p.compare(f, first, o); err != nil || !p.relational() {
		return e, false, err
	}
	second, err := p.relation()
	if err != nil {
		return nil, false, err
	}
	if op.text[0] != second.text[0] || op.text[0] != '<' && op.text[0] != '>' {
		return nil, false, errorAt(second.at, "want a range of the form a <= field <= b or a >= field >= b")
	}
	if o, err = p.operand(); err != nil {
		return nil, false, err
	}
	e2, err := p.compare(f, second, o)
	return p.join(true, []expr{e, e2}), false, err
}

func (p *parser) compare(f, op token, o operand) (expr, error) {
	c, err := newCompare(f, op, o, p.negated)
	if err != nil {
		return nil, err
	}
	p.compares = append(p.compares, c)
	return c, nil
}

func (p *parser) field() (token, error) {
	t := p.token
	switch {
	case t.kind != name:
		return t, p.unexpected("a field")
	case fieldOf(t.text) == nil:
		return t, errorAt(t.at, "%s is not known, want a field or predicate that package verdict documents", t)
	}
	return t, p.advance()
}

func (p *parser) relation() (token, error) {
	t := p.token
	if !p.relational() {
		return t, p.unexpected("==, !=, <, <=, > or >=")
	}
	return t, p.advance()
}

// operand reads a constant, or several in braces. Commas between them are optional.
func (p *parser) operand() (operand, error) {
	o := operand{at: p.token.at}
	var err error
	if o.set, err = p.accept("{"); err != nil {
		return o, err
	}
	for {
		if err := p.constant(&o); err != nil || !o.set {
			return o, err
		}
		if _, err := p.accept(","); err != nil {
			return o, err
		}
		if closed, err := p.accept("}"); err != nil || closed {
			return o, err
		}
	}
}

// constant adds the next token to an operand.
func (p *parser) constant(o *operand) error {
	t := p.token
	switch t.kind {
	case literal:
		o.constants = append(o.constants, t.constant)
	case quoted:
		o.strings = append(o.strings, t.text)
	case setName:
		o.sets = append(o.sets, t.text)
	case groupName:
		o.groups = append(o.groups, t.text)
	default:
		return p.unexpected("a number, an address, a string, $set or @group")
	}
	if o.text() && len(o.constants)+len(o.sets) > 0 {
		return errorAt(t.at, "numbers or addresses beside names of ports")
	}
	return p.advance()
}
