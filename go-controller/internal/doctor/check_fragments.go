package doctor

import (
	"context"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// ovnMatchesFragments is the first version of ovn-northd that knows names.ACLConntrackOption.
const ovnMatchesFragments = "25.03.3"

// checkFragments tells what becomes of fragments where a rule of a policy allows a port. It is never a problem: whether
// to have OVN look for ports in connection tracking is the operator's choice.
func checkFragments(_ context.Context, h *facts) Finding {
	northd := VersionIn(h.global["northd_internal_version"])
	const lost = "where a rule of a policy allows a port, the userspace datapath loses UDP datagrams larger than the MTU"
	switch {
	case h.c.Node.DatapathType != config.DatapathNetdev:
		return ok("the kernel's datapath puts them together before policies are asked")
	case northd == "":
		return unchecked("SB_Global names no version of ovn-northd: has it ever run?")
	case !AtLeast(northd, ovnMatchesFragments):
		return ok("%s; OVN %s and later can do better, ovn-northd is %s", lost, ovnMatchesFragments, northd)
	case h.global[names.ACLConntrackOption] != "true":
		return ok("%s, unless the masters have --acl-ct-translation", lost)
	}
	return ok("rules of ports match them (%s)", names.ACLConntrackOption)
}
