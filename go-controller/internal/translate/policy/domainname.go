package policy

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
)

// Reasons of reports about the names in DNS that rules have.
const (
	ReasonNameTrouble = "DomainNameTrouble"
	ReasonNameInside  = "DomainNameInside"
)

// mostNamed is how many names a report lists.
const mostNamed = 8

// domainNames reports the names of a policy that have no addresses, or old ones, and those with addresses that rules do
// not accept. pending is true while DNS has not been heard about some of them: more may follow.
func domainNames(s *cluster.State, p *cluster.TieredPolicy) (out []cluster.Problem, pending bool) {
	x := index.DomainNamesOf(s)
	trouble, inside := &listed{}, &listed{}
	for _, name := range x.Of(p.Name) {
		d, ok := s.Object(cluster.DomainNameRef(name)).(*cluster.DomainName)
		if pending = pending || !ok || d.Pending; ok && d.Trouble != "" {
			trouble.add("%s: %s", name, d.Trouble)
		}
		if _, refused := x.Addresses(s, name); len(refused) > 0 {
			inside.add("%s", name) // no more: whoever owns the name chooses how many and which
		}
	}
	report := func(reason, text string, l *listed) {
		if l.count > 0 {
			out = append(out, cluster.Problem{Ref: p.Ref(), UID: p.UID, Reason: reason, Message: text + l.String()})
		}
	}
	report(ReasonNameTrouble, "domainNames: ", trouble)
	report(ReasonNameInside, "domainNames: addresses inside of the cluster are not accepted by name: ", inside)
	return out, pending
}

// listed is a list in words, with an end.
type listed struct {
	text  string
	count int
}

func (l *listed) add(format string, args ...any) {
	if l.count++; l.count > mostNamed {
		return
	}
	if l.text != "" {
		l.text += "; "
	}
	l.text += fmt.Sprintf(format, args...)
}

// String is the list.
func (l *listed) String() string {
	if l.count > mostNamed {
		return fmt.Sprintf("%s; and %d more names", l.text, l.count-mostNamed)
	}
	return l.text
}
