package policy_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/policy"
)

// A policy is judged when DNS has been heard about all of its names, so that a new master does not judge it otherwise
// for a moment. What is wrong with names is a remark.
func TestNamesJudged(t *testing.T) {
	p := ruled("p", 1)
	p.Egress = []cluster.TieredRule{{Action: cluster.Accept, PolicyRule: cluster.PolicyRule{AnyPort: true,
		Peers: []cluster.PolicyPeer{{Domain: "a.example"}, {Domain: "b.example"}}}}}
	a := func(addrs ...string) *cluster.DomainName {
		var list []netip.Addr
		for _, text := range addrs {
			list = append(list, netip.MustParseAddr(text))
		}
		return cluster.NewDomainName("a.example", list, "")
	}
	b := cluster.NewDomainName("b.example", nil, "")
	pending, trouble := *b, *b
	pending.Pending, trouble.Trouble = true, "DNS knows no such name"
	for what, c := range map[string]struct {
		known        []cluster.Object
		reason, text string
	}{
		"nothing is known": {nil, "", ""},
		"one is not known": {[]cluster.Object{a("192.0.2.9")}, "", ""},
		"one is pending":   {[]cluster.Object{a("192.0.2.9"), &pending}, "", ""},
		"all are known":    {[]cluster.Object{a("192.0.2.9"), b}, policy.ReasonAccepted, "all rules are in effect"},
		"trouble": {[]cluster.Object{a("192.0.2.9"), &trouble}, policy.ReasonNameTrouble,
			"domainNames: b.example: DNS knows no such name"},
		"inside": {[]cluster.Object{a("192.0.2.1", "192.0.2.9", "10.128.0.1"), b}, policy.ReasonNameInside,
			"domainNames: addresses inside of the cluster are not accepted by name: a.example"},
	} {
		made := translated(twoPods(append(c.known, p)...))
		rows, err := made.Rows(nb.Owner{Kind: names.KindClusterPolicy, Name: "p"})
		switch {
		case err != nil:
			t.Error(err)
		case c.reason == "" && rows.Judged != nil, c.reason != "" && rows.Judged == nil:
			t.Errorf("%s: judged %+v, want reason %q", what, rows.Judged, c.reason)
		case c.reason != "":
			if j := rows.Judged.Conditions[0]; !j.True || j.Reason != c.reason || !strings.Contains(j.Message, c.text) {
				t.Errorf("%s: %+v, want %s: %s", what, j, c.reason, c.text)
			}
		}
	}
}
