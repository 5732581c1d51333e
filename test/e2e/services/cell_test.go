package services

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// cell is what one client got at one address of a service, over one protocol.
type cell struct {
	client   client
	way      way
	service  *service
	protocol string
	to       netip.AddrPort

	who, seen map[string]bool // the nodes of the backends that answered, and the sources they saw
	wrong     string          // with the last round; "" when all was as it should be
	settled   bool            // all was, before
	broken    string          // what was wrong nevertheless
}

func (c *cell) question() string { return c.protocol + " " + c.to.String() }

// times is how often it is asked in a round: what is dropped, once, as it takes
// its time; the more often, the more backends there are to be met.
func (c *cell) times() int { return 1 + len(answering(c.client, c.way, c.service)) }

func (c *cell) String() string {
	return fmt.Sprintf("%s asks %s, %s of %s", c.client.name, c.question(), c.way.name, c.service)
}

// take judges the answers of a round. What is lost now and then is asked again;
// an answer from a backend that may not answer is wrong, and so is one that saw
// somebody else than it must.
func (c *cell) take(answers []string, whose map[netip.Addr]string) {
	want := answering(c.client, c.way, c.service)
	who := map[string]bool{}
	c.wrong = ""
	for _, a := range answers {
		name, source, ok := strings.Cut(a, " ")
		from, err := netip.ParseAddrPort(source)
		if !ok || err != nil { // no answer
			if len(want) > 0 || !dropped(a) {
				c.wrong = a
			}
			continue
		}
		node := name[strings.LastIndexByte(name, '-')+1:]
		if !slices.Contains(want, node) {
			c.wrong = fmt.Sprintf("%s answered, want one of %v", name, want)
			if c.settled {
				c.broken = c.wrong
			}
			return
		}
		seen := whose[from.Addr().Unmap()]
		if seen == "" {
			c.wrong = fmt.Sprintf("%s saw %s, which is nobody's", name, from)
			return
		}
		if want := keeps(c.client, c.way, c.service); want != "" && seen != want {
			c.wrong = fmt.Sprintf("%s saw %s, want %s", name, seen, want)
			if c.settled {
				c.broken = c.wrong
			}
			return
		}
		who[node], c.seen[seen] = true, true
	}
	if !c.settled && c.service.affinity == corev1.ServiceAffinityClientIP {
		clear(c.who) // of endpoints that were still to come
	}
	maps.Copy(c.who, who)
	switch {
	case c.wrong != "":
	case c.service.affinity == corev1.ServiceAffinityClientIP && len(c.who) > 1:
		c.wrong = fmt.Sprintf("%v answered, want always the same", sorted(c.who))
	case c.service.affinity == corev1.ServiceAffinityNone && len(c.who) < len(want):
		c.wrong = fmt.Sprintf("only %v answered yet, want %v", sorted(c.who), want)
	}
}

// settle begins the round that counts: what was seen on the way there, when
// rows and rules were still to come, is not what the tables tell.
func (c *cell) settle() {
	c.settled = true
	clear(c.seen)
	if c.service.affinity == corev1.ServiceAffinityNone {
		clear(c.who)
	}
}

// dropped tells how a client notices that its packets are dropped; the last is
// what a host says of a datagram of its own (nft(8), drop in an output hook).
func dropped(answer string) bool {
	return slices.ContainsFunc([]string{"deadline exceeded", "i/o timeout", "operation not permitted"}, func(s string) bool {
		return strings.Contains(answer, s)
	})
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
