package cluster

import "reflect"

// TieredPolicy is a ClusterNetworkPolicy: what the administrators of the cluster decide about the connections of pods
// (policy.networking.k8s.io/v1alpha2).
type TieredPolicy struct {
	Name, UID string
	Created   int64 // creation time, Unix seconds: the oldest of those with the same tier and priority is asked first
	Tier      PolicyTier
	Priority  int // 0 to 1000; the lowest is asked first
	Pods      PodSelector
	Logging   Logging
	// Ingress and Egress are asked in their order. Each has at most MaxClusterRules.
	Ingress, Egress []TieredRule
	Problems        []Problem // why rules fail closed, or the policy selects no pod
	Observed        Observed
}

// Replace says that the policy is the new version of an object: it is as old.
func (p *TieredPolicy) Replace(o Object) {
	if q, ok := o.(*TieredPolicy); ok {
		p.Created = q.Created
	}
}

// MaxClusterRules is how many rules a ClusterNetworkPolicy may have for each direction.
const MaxClusterRules = 25

// MaxClusterPriority is the highest number, which is asked last.
const MaxClusterPriority = 1000

// PolicyTier says whether a ClusterNetworkPolicy is asked before NetworkPolicies or after them.
type PolicyTier string

// The tiers of the API.
const (
	AdminTier    PolicyTier = "Admin"
	BaselineTier PolicyTier = "Baseline"
)

// PolicyAction is what a rule of a ClusterNetworkPolicy does with the connections that it matches.
type PolicyAction string

// The actions of the API. Pass leaves the decision to the next tier.
const (
	Accept PolicyAction = "Accept"
	Deny   PolicyAction = "Deny"
	Pass   PolicyAction = "Pass"
)

// TieredRule does something with connections of any of its peers to any of its ports.
type TieredRule struct {
	Name   string // may be ""
	Action PolicyAction
	PolicyRule
}

// HasRules is true when the policy may decide anything. p may be nil.
func (p *TieredPolicy) HasRules() bool { return p != nil && len(p.Ingress)+len(p.Egress) > 0 }

// Ref implements Object.
func (p *TieredPolicy) Ref() Ref { return Ref{KindClusterNetworkPolicy, Name{Name: p.Name}} }

// Observe implements Observable.
func (p *TieredPolicy) Observe() Observed { return p.Observed }

// Equal implements Object. What was observed of the status does not count.
func (p *TieredPolicy) Equal(o Object) bool {
	q, ok := o.(*TieredPolicy)
	if !ok || p == nil || q == nil {
		return ok && p == q
	}
	a, b := *p, *q
	a.Observed, b.Observed = Observed{}, Observed{}
	return reflect.DeepEqual(a, b)
}
