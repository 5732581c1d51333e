package nft

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
)

// rule is a rule of one of our chains.
type rule struct {
	chain, about string // about says in words what the rule is for; the item is read from these
	exprs        []expr.Any
}

// The comment of a rule is what it is about, hashMark, and hashSize bytes of a hash
// in hex.
const (
	hashMark = " #"
	hashSize = 6
)

// comment is what the kernel keeps beside the rule. The hash is of the content as it
// is sent: the kernel gives back the same in another form. By it a rule of another
// version is known if no more than a number in it differs.
func (r rule) comment() string {
	h := sha256.New()
	for _, e := range r.exprs {
		b, _ := expr.Marshal(byte(nftables.TableFamilyINet), e) // sending reports what can't be marshalled
		h.Write(b)
	}
	return r.about + hashMark + hex.EncodeToString(h.Sum(nil)[:hashSize])
}

// is tells whether the kernel's rule is r: it has the comment, and the content. A
// rule can't be edited in place, but somebody may have replaced it and copied the
// comment.
func (r rule) is(have *nftables.Rule) bool {
	comment, _ := userdata.GetString(have.UserData, userdata.TypeComment)
	unread := func(e expr.Any) bool { _, socket := e.(*expr.Socket); return socket } // by the library
	sent := slices.DeleteFunc(slices.Clone(r.exprs), unread)
	return comment == r.comment() && slices.EqualFunc(sent, have.Exprs, sameExpr)
}

// sameExpr compares an expression that was sent with one that the kernel gave back:
// all but registers, which it numbers in its own way.
func sameExpr(sent, have expr.Any) bool {
	return reflect.DeepEqual(withoutRegisters(sent), withoutRegisters(have))
}

func withoutRegisters(e expr.Any) any {
	out := reflect.New(reflect.TypeOf(e).Elem()).Elem()
	out.Set(reflect.ValueOf(e).Elem())
	for i := range out.NumField() {
		// NAT.Specified says that RegProtoMin is set.
		if name := out.Type().Field(i).Name; strings.Contains(name, "Reg") || name == "Specified" {
			out.Field(i).SetZero()
		}
	}
	return out.Interface()
}

// about is what a rule of the kernel is for, by its comment.
func about(r *nftables.Rule) string {
	comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
	about, _, _ := strings.Cut(comment, hashMark)
	return about
}

// ruleSet is the rules of those chains of an item that the kernel has.
type ruleSet struct {
	conn   *nftables.Conn
	chains map[string]*nftables.Chain  // all of our table, by name
	rules  map[string][]*nftables.Rule // by chain
	whole  bool                        // all of the item's chains are there, and hooked as they should be
}

// readRules reads an item's chains. ok is false when none of them is there.
func readRules(want []*nftables.Chain) (s ruleSet, ok bool, err error) {
	s = ruleSet{rules: map[string][]*nftables.Rule{}, whole: true}
	if s.conn, s.chains, err = openTable(ourTable()); err != nil {
		return s, false, err
	}
	for _, w := range want {
		have := s.chains[w.Name]
		ok = ok || have != nil
		if have == nil || !sameChain(have, w) {
			s.whole = false
			continue
		}
		rules, err := s.conn.GetRules(ourTable(), have)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return s, false, fmt.Errorf("reading nftables rules: %w", err)
		}
		s.rules[w.Name] = rules
	}
	return s, ok, nil
}

// abouts lists what the rules are for.
func (s ruleSet) abouts() (out []string) {
	for _, rules := range s.rules {
		for _, r := range rules {
			out = append(out, about(r))
		}
	}
	return out
}

// exactly tells whether the chains have just these rules, in their order.
func (s ruleSet) exactly(want []rule) bool {
	n := map[string]int{}
	for _, w := range want {
		rules := s.rules[w.chain]
		if n[w.chain] >= len(rules) || !w.is(rules[n[w.chain]]) {
			return false
		}
		n[w.chain]++
	}
	for chain, rules := range s.rules {
		if len(rules) != n[chain] {
			return false
		}
	}
	return s.whole
}

// addRules adds chains and their rules to the transaction.
func addRules(c *nftables.Conn, chains []*nftables.Chain, rules []rule) {
	byName := map[string]*nftables.Chain{}
	for _, ch := range chains {
		byName[ch.Name] = c.AddChain(ch)
	}
	for _, r := range rules {
		comment := userdata.AppendString(nil, userdata.TypeComment, r.comment())
		c.AddRule(&nftables.Rule{Table: ourTable(), Chain: byName[r.chain], Exprs: r.exprs, UserData: comment})
	}
}
