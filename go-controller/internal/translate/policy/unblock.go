package policy

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// unblocking is the rows that cut connections need while there are tiers, for the switches that list them.
//
// In the tiers before the last, it keeps a tier that decides nothing from letting every other packet pass of a
// connection that a later tier does not allow any more: ovn-northd's flow for such packets (ct_mark.blocked) would
// allow them without asking that tier.
//
// In the last tier, it lets packets of a connection pass that an earlier tier has cut, and that is allowed now.
// Without it, tier 1 would be the last on a switch whose pods no policy selects. The ACL of tier 1 would then pass the
// packets with the connection still cut, so that OVN would drop the replies.
func unblocking(m translate.Maker, in ...nb.Slot) (out []nb.Row) {
	for tier, action := range []string{nbdb.ACLActionPass, nbdb.ACLActionPass, nbdb.ACLActionAllowRelated} {
		acl := ingress().acl(names.ACLUnblock, action, blocked)
		acl.Tier = tier
		out = append(out, m.Row(fmt.Sprintf("%s-%d", names.RoleUnblock, tier), acl, in...))
	}
	return out
}

// blocked matches packets of a connection that an ACL has cut.
const blocked = "ip && ct.est && ct_mark.blocked == 1"
