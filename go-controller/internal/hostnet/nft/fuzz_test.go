package nft

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// A node's name and servers' addresses of any content give the same rules as usual ones: a name is the interface that a
// rule compares, and is in the rule's comment, and nowhere else.
func FuzzRulesOfHostileNames(f *testing.F) {
	f.Add("n1", "tcp:192.0.2.1:6642", "10.244.1.0/24")
	f.Add("n1\" accept # ", "tcp:[fe80::1%x of this node from m0]:6642", "fd01::/64")
	f.Add(" own of lo #\n", "ssl:192.0.2.1:1,ssl:[2001:db8::1]:6641", "10.244.1.0/24 own of lo")
	f.Add(strings.Repeat("é", 40), "", "")
	f.Fuzz(func(t *testing.T, node, southbound, subnet string) {
		hostile, usual := rulesFor(node, southbound, subnet), rulesFor("n1", southbound, subnet)
		if len(hostile) != len(usual) {
			t.Fatalf("%d rules, and %d for a usual name", len(hostile), len(usual))
		}
		link, m := names.ManagementInterface(node), names.ManagementInterface("n1")
		for i, got := range hostile {
			want := usual[i]
			if strings.HasSuffix(want.about, m) {
				want.about = strings.TrimSuffix(want.about, m) + link
			}
			if got.chain != want.chain || got.about != want.about || !isOurChain(got.chain) {
				t.Errorf("rule %q of %s, want %q of %s", got.about, got.chain, want.about, want.chain)
			}
			if !reflect.DeepEqual(named(want.exprs, m, link), got.exprs) {
				t.Errorf("rule %q has other expressions than the one for a usual name", got.about)
			}
			kept := userdata.AppendString(nil, userdata.TypeComment, got.comment())
			if comment, ok := userdata.GetString(kept, userdata.TypeComment); !ok || comment != got.comment() {
				t.Errorf("rule %q: the kernel gets the comment %q", got.about, comment)
			}
		}
	})
}

// rulesFor lists the rules of every item that has an interface's name.
func rulesFor(node, southbound, subnet string) (out []rule) {
	c := config.DefaultNode()
	c.Name = node
	facts := hostplan.Facts{Southbound: southbound, Northbound: southbound}
	link := names.ManagementInterface(node)
	m, h := hostplan.Masquerade{Except: link}, hostplan.Hairpin{Link: link}
	if p, err := netip.ParsePrefix(subnet); err == nil {
		facts.Subnets, c.ServiceCIDRs = []netip.Prefix{p.Masked()}, []netip.Prefix{p.Masked()}
		if p.Addr().Is4() {
			m.V4, h.V4 = p.Masked(), p.Addr()
		} else {
			m.V6, h.V6 = p.Masked(), p.Addr()
		}
	}
	out = append(out, masqueradeRules(m)...)
	out = append(out, hairpinRules(h)...)
	out = append(out, antiSpoofRules(hostplan.NewAntiSpoof(facts, c))...)
	return append(out, databaseDropRules(hostplan.NewDatabaseDrop(facts, c))...)
}

// named is expressions with another interface's name.
func named(exprs []expr.Any, from, to string) (out []expr.Any) {
	for _, e := range exprs {
		if c, is := e.(*expr.Cmp); is && bytes.Equal(c.Data, interfaceName(from)) {
			e = &expr.Cmp{Op: c.Op, Register: c.Register, Data: interfaceName(to)}
		}
		out = append(out, e)
	}
	return out
}

// An entry of one family reads back from the set element that it is in the kernel.
func FuzzServiceElement(f *testing.F) {
	for _, line := range []string{
		"serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "away-share TCP [::]:30080 from fd99::2/128 bucket 7 to [fd99::3]:30080",
		"allow UDP 192.0.2.7:80 from 198.51.100.0/24", "limit SCTP 192.0.2.7:80", "serve X 0.0.0.0:1 to 192.0.2.7:80",
		"local TCP [2001:db8::7%x]:80 to [2001:db8::8%y]:80",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := hostplan.ParseServiceEntry(line)
		if err != nil || !ofOneFamily(e) {
			return
		}
		s := serviceSetOf(e)
		element, err := s.element(e)
		if err != nil {
			return
		}
		if got := s.entry(element); got != e {
			t.Errorf("%q came back as %q", line, got)
		}
	})
}

// ofOneFamily tells whether a planner may have made the entry: its addresses have one family and no zone, and a range
// begins with its first address.
func ofOneFamily(e hostplan.ServiceEntry) bool {
	of := func(a netip.Addr) bool { return a.Is4() == e.At.Addr().Is4() && a.Zone() == "" && !a.Is4In6() }
	single := e.Kind == hostplan.AllowEntry || e.From.IsSingleIP()
	return of(e.At.Addr()) && (!e.Kind.HasTo() || of(e.To.Addr())) &&
		(!e.Kind.HasFrom() || of(e.From.Addr()) && e.From == e.From.Masked() && single) &&
		(!e.Kind.HasBuckets() || e.Bucket >= 0 && e.Bucket < e.Kind.Buckets())
}
