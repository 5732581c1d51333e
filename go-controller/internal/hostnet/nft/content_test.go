package nft

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// content is an item with its chains and rules.
type content struct {
	item   hostplan.Item
	chains []*nftables.Chain
	rules  func() []rule
}

func contents(t *testing.T) []content {
	t.Helper()
	m := hostplan.Masquerade{
		V4: netip.MustParsePrefix("10.1.0.0/24"), V6: netip.MustParsePrefix("fd01::/64"), Except: "m0",
	}
	h := hostplan.Hairpin{Link: "m0", V4: netip.MustParseAddr("10.1.0.2"), V6: netip.MustParseAddr("fd01::2")}
	p := servicePorts(t, everyEntry()...)
	n, err := serviceNode(p)
	if err != nil {
		t.Fatal(err)
	}
	return []content{
		{m, masqueradeChains(), func() []rule { return masqueradeRules(m) }},
		{h, hairpinChains(), func() []rule { return hairpinRules(h) }},
		{antiSpoof(), antiSpoofChains(), func() []rule { return antiSpoofRules(antiSpoof()) }},
		{databaseDrop(), databaseDropChains(), func() []rule { return databaseDropRules(databaseDrop()) }},
		{p, serviceChains(), func() []rule { return serviceRules(n) }},
	}
}

// otherNumber changes no more than a number in a rule.
func otherNumber(r rule) rule {
	r.exprs = slices.Clone(r.exprs)
	for i, e := range slices.Backward(r.exprs) {
		if c, is := e.(*expr.Cmp); is {
			data := slices.Clone(c.Data)
			data[len(data)-1] ^= 1
			r.exprs[i] = &expr.Cmp{Op: c.Op, Register: c.Register, Data: data}
			break
		}
	}
	return r
}

// write has the kernel have just these rules in the item's chains, with comments of
// their own.
func (c content) write(t *testing.T, rules []rule, comments []string) {
	t.Helper()
	conn, chains, err := openTable(ourTable())
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range c.chains {
		conn.FlushChain(chains[ch.Name])
	}
	for i, r := range rules {
		comment := userdata.AppendString(nil, userdata.TypeComment, comments[i])
		conn.AddRule(&nftables.Rule{Table: ourTable(), Chain: chains[r.chain], Exprs: r.exprs, UserData: comment})
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

func comments(rules []rule) (out []string) {
	for _, r := range rules {
		out = append(out, r.comment())
	}
	return out
}

// transactions counts those that do makes in nftables.
func transactions(t *testing.T, do func()) uint32 {
	t.Helper()
	before, err := ruleGeneration()
	if err != nil {
		t.Fatal(err)
	}
	do()
	after, err := ruleGeneration()
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

// The same rule has the same comment, and any other rule another one.
func TestComments(t *testing.T) {
	for _, c := range contents(t) {
		first, again := comments(c.rules()), comments(c.rules())
		if !slices.Equal(first, again) {
			t.Errorf("%s: comments %q, and then %q", c.item.Key(), first, again)
		}
		for i, r := range c.rules() {
			other := otherNumber(r).comment()
			if about, hash, ok := strings.Cut(other, hashMark); !ok || about != r.about || len(hash) != 2*hashSize ||
				other == first[i] {
				t.Errorf("%s: with another number the comment %q is %q", c.item.Key(), first[i], other)
			}
		}
	}
}

// What was written by another version, or by hand, is found and replaced in one
// transaction, which touches no element; what is as it should be is left alone, also
// by an agent that has just begun.
func TestContentRepaired(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	for _, c := range contents(t) {
		converge(t, k, c.item)
		want := testkit.Run(t, "nft", "list", "table", "inet", "northbound")
		repaired := func(damage string, n uint32) {
			t.Helper()
			var changes, elements int
			made := transactions(t, func() {
				elements = changedElements(t, func() {
					done, err := item.Converge(t.Context(), k, []hostplan.Item{c.item})
					if changes = len(done); err != nil {
						t.Error(err)
					}
				})
			}) - 1 // changedElements makes one itself
			if changes != int(n) || made != n || elements != 0 {
				t.Errorf("%s, %s: %d changes in %d transactions with %d elements, want %d", c.item.Key(), damage, changes, made,
					elements, n)
			}
			if got := testkit.Run(t, "nft", "list", "table", "inet", "northbound"); got != want {
				t.Fatalf("%s, %s: the table is\n%s\nwant\n%s", c.item.Key(), damage, got, want)
			}
			k = NewTables()
		}
		repaired("a restart", 0)

		old := c.rules()
		var plain []string
		for _, r := range old {
			plain = append(plain, r.about)
		}
		c.write(t, old, plain)
		repaired("an older version's rules without hashes", 1)
		repaired("a second look", 0)

		for i := range c.rules() {
			other := c.rules()
			other[i] = otherNumber(other[i])
			c.write(t, other, comments(other))
			repaired("another version's number in rule "+other[i].about, 1)
			c.write(t, other, comments(c.rules()))
			repaired("another number behind the same comment "+other[i].about, 1)
		}
		if err := k.Apply(item.Change{Have: c.item}); err != nil {
			t.Fatal(err)
		}
	}
}

// nft(8) has no way to edit a rule: a replaced one has lost its comment.
func TestReplacedByHand(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	k := NewTables()
	want := contents(t)[1].item
	converge(t, k, want)
	for _, copied := range []bool{false, true} {
		var handle, comment string
		for line := range strings.Lines(testkit.Run(t, "nft", "-a", "list", "chain", "inet", "northbound", "hairpin-in")) {
			if before, after, ok := strings.Cut(strings.TrimSpace(line), " # handle "); ok && strings.Contains(before,
				"169.254") {
				_, comment, _ = strings.Cut(before, " comment ")
				handle = after
			}
		}
		rule := "iifname m0 ip saddr 10.1.0.2 ip saddr set 169.254.169.7"
		if copied {
			rule += " comment " + comment
		}
		testkit.Run(t, "nft", "replace rule inet northbound hairpin-in handle "+handle+" "+rule)
		if got := converge(t, k, want); len(got) != 1 {
			t.Errorf("after %q the changes are %v, want 1", rule, got)
		}
	}
}
