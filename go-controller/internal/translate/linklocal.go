package translate

import (
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// linkLocal matches the addresses that every pod has beside those that were granted. Port security lets a pod use the
// one that follows from its MAC, and no address set has it: a Deny of pods would not match. Neighbour discovery and
// multicast listener discovery pass all ACLs.
const linkLocal = "ip6.src == fe80::/10 || ip6.dst == fe80::/10"

// LinkLocal is the ACL that drops what pods send from or to such addresses, for the switches that list it.
func LinkLocal(m Maker, in ...nb.Slot) nb.Row {
	return m.Row(names.RoleLinkLocal, &nbdb.ACL{
		Priority: names.ACLLinkLocal, Direction: nbdb.ACLDirectionFromLport, Match: linkLocal,
		Action: nbdb.ACLActionDrop,
	}, in...)
}
