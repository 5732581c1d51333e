package cluster

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// IPAMClaim is addresses in a network that stay while the object is there, whichever pod has them
// (k8s.cni.cncf.io/v1alpha1).
type IPAMClaim struct {
	Name    Name
	UID     string
	Created int64          // creation time, Unix seconds
	Network string         // as the object names it: see State.NetworkOfClaim
	Asked   []netip.Prefix // what its author asks for, one of each family at most
	Invalid string         // why it can't be used; "" for one that can
	// IPs is the addresses that its status has, and Pod the name of the pod that had them last.
	IPs []netip.Prefix
	Pod string
	Own Condition // what its status says of them, as TypeIPsAllocated; zero when it says nothing
	// Status is the status as JSON, letter by letter; "" when there is none.
	Status string
}

// Ref implements Object.
func (c *IPAMClaim) Ref() Ref { return Ref{KindIPAMClaim, c.Name} }

// Equal implements Object.
func (c *IPAMClaim) Equal(o Object) bool {
	d, ok := o.(*IPAMClaim)
	return ok && c.Name == d.Name && c.UID == d.UID && c.Created == d.Created && c.Network == d.Network &&
		c.Invalid == d.Invalid && c.Pod == d.Pod && c.Status == d.Status && slices.Equal(c.Asked, d.Asked) &&
		slices.Equal(c.IPs, d.IPs)
}

// NetworkOfClaim is the network that a claim is about. The claim names it as pods of its namespace do, or as the large
// upstream project calls the networks of UserDefinedNetworks: with the namespace and an underscore before the name, or
// "cluster_udn_".
func (s *State) NetworkOfClaim(c *IPAMClaim) names.Network {
	namespace, name := c.Name.Namespace, c.Network
	if i := strings.IndexAny(name, "._/"); i > 0 && (name[:i] == namespace || name[:i] == SharedNamespace) {
		namespace, name = name[:i], name[i+1:]
	} else if shared, ok := strings.CutPrefix(name, "cluster_udn_"); ok {
		name = shared
	}
	return s.meant(c.Name.Namespace, names.Defined(namespace, name))
}

// PodsClaiming lists the pods that refer to an IPAMClaim, sorted.
func (s *State) PodsClaiming(claim Name) []Name { return s.claimants[claim].Sorted() }

// claimsOf lists the IPAMClaims that a pod refers to.
func claimsOf(p *Pod) (out []Name) {
	for _, a := range p.Attachments {
		if a.Asked.Claim != "" {
			out = append(out, Name{p.Name.Namespace, a.Asked.Claim})
		}
	}
	if p.Preferred.Claim != "" {
		out = append(out, Name{p.Name.Namespace, p.Preferred.Claim})
	}
	return out
}
