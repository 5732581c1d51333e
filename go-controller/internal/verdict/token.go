package verdict

import (
	"encoding/json"
	"fmt"
	"strings"
)

// kind is what a token is.
type kind int

const (
	end       kind = iota
	operator       // ( ) { } , ! && || == != < <= > >=
	name           // of a field or a predicate
	literal        // a number or an address, with a mask or not
	quoted         // a string; the token's text is what it says
	setName        // $name; the token's text has no $
	groupName      // @name; the token's text has no @
)

// token is the smallest part of a match.
type token struct {
	kind     kind
	text     string
	at       int // where it begins in the match, in bytes
	constant constant
}

// String is how errors name the token.
func (t token) String() string {
	if t.kind == end {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// syntaxError tells what is wrong with a match, and where.
type syntaxError struct {
	at  int // in bytes
	why string
}

// Error implements error.
func (e *syntaxError) Error() string { return fmt.Sprintf("at character %d: %s", e.at+1, e.why) }

func errorAt(at int, format string, args ...any) error {
	return &syntaxError{at, fmt.Sprintf(format, args...)}
}

// scan is the token that begins at or after a place in a match, and where the token ends.
func scan(match string, at int) (t token, next int, err error) {
	for at < len(match) && strings.IndexByte(" \t\n\r\v\f", match[at]) >= 0 {
		at++
	}
	rest := match[at:]
	if rest == "" {
		return token{kind: end, at: at}, at, nil
	}
	for _, op := range []string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")", "{", "}", ","} {
		if strings.HasPrefix(rest, op) {
			return token{kind: operator, text: op, at: at}, at + len(op), nil
		}
	}
	switch c := rest[0]; {
	case c == '"':
		return scanQuoted(match, at)
	case c == '$' || c == '@':
		id := span(rest[1:], idCharacter)
		if id == "" || digit(id[0]) {
			return token{}, at, errorAt(at, "want a name after %c", c)
		}
		return token{kind: map[byte]kind{'$': setName, '@': groupName}[c], text: id, at: at}, at + 1 + len(id), nil
	case numeric(rest):
		return scanConstant(match, at)
	case idCharacter(c):
		id := span(rest, idCharacter)
		return token{kind: name, text: id, at: at}, at + len(id), nil
	}
	return token{}, at, errorAt(at, "%q begins no token", string([]rune(rest)[0]))
}

// scanQuoted reads a string, which has JSON's syntax.
func scanQuoted(match string, at int) (token, int, error) {
	for next := at + 1; next < len(match); next++ {
		switch match[next] {
		case '\\':
			next++
		case '"':
			t := token{kind: quoted, at: at}
			if err := json.Unmarshal([]byte(match[at:next+1]), &t.text); err != nil {
				return token{}, at, errorAt(at, "%s is no string: %v", match[at:next+1], err)
			}
			return t, next + 1, nil
		}
	}
	return token{}, at, errorAt(at, "a string without its end")
}

func scanConstant(match string, at int) (token, int, error) {
	text := span(match[at:], constantCharacter)
	if next := at + len(text); next < len(match) && match[next] == '/' {
		text += "/" + span(match[next+1:], constantCharacter)
	}
	c, err := parseConstant(text)
	if err != nil {
		return token{}, at, errorAt(at, "%v", err)
	}
	return token{kind: literal, text: text, at: at, constant: c}, at + len(text), nil
}

// numeric tells whether s begins with a number or an address. An IPv6 address may begin with a letter.
func numeric(s string) bool {
	hex := span(s, func(c byte) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' })
	return digit(s[0]) || s[0] == ':' || hex != "" && strings.HasPrefix(s[len(hex):], ":")
}

// span is the beginning of s whose bytes are all of a class.
func span(s string, of func(byte) bool) string {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return s[:n]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func idCharacter(c byte) bool { return letter(c) || digit(c) || c == '_' || c == '.' }

func constantCharacter(c byte) bool { return letter(c) || digit(c) || c == ':' || c == '.' }
