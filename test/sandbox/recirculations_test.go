package sandbox

import (
	"slices"
	"strings"
	"testing"
)

// The longest path through a datapath: with a tunnel before it, through IDs that lead back, and without flows.
func TestLongestPath(t *testing.T) {
	const (
		outside = "recirc_id(0),in_port(2),eth_type(0x0800), packets:1, actions:ct(zone=5,nat),recirc(0x1)"
		tunnel  = "recirc_id(0),tunnel(tun_id=0x3),in_port(5), packets:1, actions:ct(zone=6,nat),recirc(0x4)"
		first   = "recirc_id(0x1),in_port(2), packets:1, actions:check_pkt_len(size=1514,gt(drop),le(ct(zone=1),recirc(0x2)))"
		second  = "recirc_id(0x2),in_port(2), packets:1, actions:3"
		back    = "recirc_id(0x2),in_port(9), packets:1, actions:ct(zone=1),recirc(0x1)"
		decap   = "recirc_id(0x4),tunnel(tun_id=0x3),in_port(5), packets:1, actions:ct(zone=1),recirc(0x5)"
		last    = "recirc_id(0x5),tunnel(tun_id=0x3),in_port(5), packets:1, actions:7"
	)
	for _, c := range []struct{ flows, want []string }{
		{nil, nil},
		{[]string{second}, nil},
		{[]string{second, outside, first}, []string{outside, first, second}},
		{[]string{outside, first, back}, []string{outside, first, back}},
		{[]string{outside, first, second, tunnel, decap, last}, []string{tunnel, decap, last}},
		{[]string{outside, first, tunnel}, []string{outside, first}},
	} {
		if got := longestPath(strings.Join(c.flows, "\n")); !slices.Equal(got, c.want) {
			t.Errorf("of\n%s\nthe longest path is\n%s\nwant\n%s", strings.Join(c.flows, "\n"), strings.Join(got, "\n"),
				strings.Join(c.want, "\n"))
		}
	}
}
