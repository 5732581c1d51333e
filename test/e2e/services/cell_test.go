package services

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// cell has the answers to one client at one address of a service, over one protocol.
type cell struct {
	client   client
	way      way
	service  *service
	protocol string
	to       netip.AddrPort

	who, seen map[string]bool // the nodes of the backends that answered, and the sources they saw
	wrong     string          // what was wrong in the last round; "" if nothing was
	settled   bool            // a round before was right
	broken    string          // what was wrong in a later round
}

func (c *cell) question() string { return c.protocol + " " + c.to.String() }

// times is the number of questions in a round: one if packets are dropped, since that takes long; more, the more
// backends must be seen.
func (c *cell) times() int { return 1 + len(answering(c.client, c.way, c.service)) }

func (c *cell) String() string {
	return fmt.Sprintf("%s asks %s, %s of %s", c.client.Name, c.question(), c.way.name, c.service)
}

// take checks the answers of a round. Lost answers are asked for again. An answer from a backend that must not answer
// is wrong, and so is an answer with a wrong client address.
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
	maps.Copy(c.who, who)
	switch {
	case c.wrong != "":
	case c.service.affinity == corev1.ServiceAffinityClientIP && len(c.who) > 1:
		c.wrong = fmt.Sprintf("%v answered, want always the same", sorted(c.who))
	case c.service.affinity == corev1.ServiceAffinityNone && len(c.who) < len(want):
		c.wrong = fmt.Sprintf("only %v answered yet, want %v", sorted(c.who), want)
	}
}

// settle begins the final round. Earlier observations, when rows and rules were still missing, do not count for the
// tables.
func (c *cell) settle() {
	c.settled = true
	clear(c.seen)
	if c.service.affinity == corev1.ServiceAffinityNone {
		clear(c.who)
	}
}

// dropped reports whether an error means that packets are dropped. The last one is the error for a datagram that a host
// itself sends (nft(8), drop in an output hook).
func dropped(answer string) bool {
	return machines.Dropped(answer) || strings.Contains(answer, "operation not permitted")
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
