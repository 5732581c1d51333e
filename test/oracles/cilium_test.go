package oracles

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"slices"

	endpoint "github.com/cilium/cilium/pkg/endpoint/regeneration"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/k8s"
	slim "github.com/cilium/cilium/pkg/k8s/slim/k8s/api/networking/v1"
	ciliumlabels "github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/policy"
	"github.com/cilium/cilium/pkg/policy/types"
	ciliumtypes "github.com/cilium/cilium/pkg/types"
	"github.com/cilium/cilium/pkg/u8proto"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

// policyEngine asks Cilium's policy engine, without its datapath. It is told of each address as of an endpoint with
// labels of its own.
type policyEngine struct {
	without
	log *slog.Logger
	*questions
	repository *policy.Repository
	identities map[netip.Addr]*identity.Identity
	pods       map[identity.NumericIdentity]*corev1.Pod
	resolved   map[identity.NumericIdentity]*policy.EndpointPolicy // made when first asked for
}

func newPolicyEngine(w without) *policyEngine {
	option.Config.EnableNodeSelectorLabels = true
	option.Config.EnableL7Proxy = true
	return &policyEngine{without: w, log: slog.New(slog.DiscardHandler)}
}

func (*policyEngine) name() string { return cilium }

func (e *policyEngine) load(q *questions) {
	e.questions = q
	e.identities = map[netip.Addr]*identity.Identity{}
	e.pods = map[identity.NumericIdentity]*corev1.Pod{}
	e.resolved = map[identity.NumericIdentity]*policy.EndpointPolicy{}
	known := identity.IdentityMap{}
	for _, v4 := range q.Families {
		for _, end := range q.Ends(v4) {
			number := identity.MinimalNumericIdentity + identity.NumericIdentity(len(known))
			id := identity.NewIdentityFromLabelArray(number, e.labelsOf(end))
			e.identities[end.Addr], known[id.ID] = id, id.LabelArray
			if end.Pod != nil {
				e.pods[id.ID] = end.Pod
			}
		}
	}
	e.repository = policy.NewPolicyRepository(e.log, known, nil, nil, nil, noMetrics{})
	e.repository.SetNamedPortsGetter(e)
	e.repository.UpdateIdentities(known, nil)
	for _, p := range q.Policies {
		entries := must(k8s.ParseNetworkPolicy(e.log, "", slimmed(e.rewritten(defaulted(p)))))
		e.repository.MustAddPolicyEntries(e.isolating(entries))
	}
	for _, p := range e.inOrder(q.ClusterPolicies) {
		e.repository.MustAddPolicyEntries(must(k8s.ParseClusterNetworkPolicy(e.log, "", e.rewrittenCluster(p))))
	}
}

// inOrder gives policies of the same priority numbers of their own, the oldest first. Gaps between others stay.
func (e *policyEngine) inOrder(policies []*v1alpha2.ClusterNetworkPolicy) []*v1alpha2.ClusterNetworkPolicy {
	if !e.adjusts(samePriority) {
		return policies
	}
	sorted := slices.SortedFunc(slices.Values(policies), func(a, b *v1alpha2.ClusterNetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var out []*v1alpha2.ClusterNetworkPolicy
	same := int32(0)
	for i, p := range sorted {
		p = p.DeepCopy()
		if i > 0 && sorted[i-1].Spec.Priority == p.Spec.Priority {
			same++
		} else {
			same = 0
		}
		p.Spec.Priority = 100*p.Spec.Priority + same
		out = append(out, p)
	}
	return out
}

// isolating adds what denies the rest to the entries of a NetworkPolicy.
func (e *policyEngine) isolating(entries types.PolicyEntries) types.PolicyEntries {
	if !e.adjusts(isolated) {
		return entries
	}
	for _, ingress := range []bool{true, false} {
		i := slices.IndexFunc(entries, func(p *types.PolicyEntry) bool { return p.Ingress == ingress })
		if i >= 0 {
			rest := *entries[i]
			rest.Verdict, rest.Priority, rest.L3, rest.L4 = types.Deny, 1, types.WildcardSelectors, nil
			entries = append(entries, &rest)
		}
	}
	return entries
}

// rewritten writes a policy so that the engine reads it as the API's text has it.
func (e *policyEngine) rewritten(p *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	if e.adjusts(portOfBlock) {
		blocksWithoutNames(p)
	}
	if e.adjusts(unnamedDirection) {
		if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			p.Spec.Ingress = nil
		}
		if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			p.Spec.Egress = nil
		}
	}
	var peers []networkingv1.NetworkPolicyPeer
	for _, r := range p.Spec.Ingress {
		peers = append(peers, r.From...)
	}
	for _, r := range p.Spec.Egress {
		peers = append(peers, r.To...)
	}
	for _, peer := range peers {
		e.ofNamespaces(peer.NamespaceSelector)
	}
	return p
}

// rewrittenCluster is the same for a ClusterNetworkPolicy.
func (e *policyEngine) rewrittenCluster(p *v1alpha2.ClusterNetworkPolicy) *v1alpha2.ClusterNetworkPolicy {
	p = p.DeepCopy()
	ofPeer := func(namespaces *metav1.LabelSelector, pods *v1alpha2.NamespacedPod) {
		e.ofNamespaces(namespaces)
		if pods != nil {
			e.ofNamespaces(&pods.NamespaceSelector)
		}
	}
	for _, r := range p.Spec.Ingress {
		for _, peer := range r.From {
			ofPeer(peer.Namespaces, peer.Pods)
		}
	}
	for _, r := range p.Spec.Egress {
		for _, peer := range r.To {
			ofPeer(peer.Namespaces, peer.Pods)
		}
	}
	return p
}

// ofNamespaces makes a selector ask for a label, too, which every namespace has.
func (e *policyEngine) ofNamespaces(s *metav1.LabelSelector) {
	if s != nil && e.adjusts(noNamespace) {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpExists})
	}
}

// must is a value that a library makes of an object which an API server accepts.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("reading a policy: %v", err))
	}
	return v
}

func slimmed(p any) *slim.NetworkPolicy {
	out := &slim.NetworkPolicy{}
	text := must(json.Marshal(p))
	if err := json.Unmarshal(text, out); err != nil {
		panic(fmt.Sprintf("reading %s: %v", text, err))
	}
	return out
}

// labelsOf is what the engine knows of an end.
func (e *policyEngine) labelsOf(end policytest.End) ciliumlabels.LabelArray {
	var out ciliumlabels.LabelArray
	add := func(source, key, value string) { out = append(out, ciliumlabels.NewLabel(key, value, source)) }
	if outside := end.Pod == nil && end.Node == ""; outside || e.adjusts(insideBlock) {
		out = ciliumlabels.GetCIDRLabelArray(netip.PrefixFrom(end.Addr, end.Addr.BitLen()))
	}
	for name, addrs := range policytest.Domains() {
		if slices.Contains(addrs, end.Addr.String()) && (!e.adjusts(domainInside) || end.Node == "" && !e.inside(end.Addr)) {
			add("fqdn", name, "")
		}
	}
	switch {
	case end.Pod != nil:
		add("k8s", "io.kubernetes.pod.namespace", end.Pod.Namespace)
		for k, v := range end.Pod.Labels {
			add("k8s", k, v)
		}
		for k, v := range e.labels[end.Pod.Namespace] {
			add("k8s", "io.cilium.k8s.namespace.labels."+k, v)
		}
	case end.Node != "":
		add("reserved", "remote-node", "")
		for _, n := range e.Nodes {
			if n.Name == end.Node {
				for k, v := range n.Labels {
					add("node", k, v)
				}
			}
		}
	}
	return out.Sort()
}

// inside tells whether an address is of the cluster's ranges of pods.
func (e *policyEngine) inside(a netip.Addr) bool {
	return slices.ContainsFunc(e.ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (e *policyEngine) allows(c connection) (allowed bool, reason deviation) {
	switch {
	case e.adjusts(itself) && c.Itself():
		return false, itself
	case e.adjusts(ownNode) && atOwnNode(c):
		return false, ownNode
	}
	protocol := map[corev1.Protocol]u8proto.U8proto{corev1.ProtocolTCP: u8proto.TCP, corev1.ProtocolUDP: u8proto.UDP,
		corev1.ProtocolSCTP: u8proto.SCTP, policytest.ICMP: u8proto.ICMP}[c.Protocol]
	port := uint16(c.Port)
	if c.Protocol == policytest.ICMP {
		port = 8
	}
	from, to := e.identities[c.From.Addr], e.identities[c.To.Addr]
	return e.decides(from, policy.EgressKey().WithIdentity(to.ID).WithPortProto(protocol, port)) &&
		e.decides(to, policy.IngressKey().WithIdentity(from.ID).WithPortProto(protocol, port)), ""
}

// decides tells whether an end's own policies allow a packet.
func (e *policyEngine) decides(end *identity.Identity, key types.Key) bool {
	if e.pods[end.ID] == nil {
		return true // policies select pods alone
	}
	p := e.resolved[end.ID]
	if p == nil {
		selected := must(first(e.repository.ComputeSelectorPolicy(end)))
		redirects := map[string]uint16{policy.FallbackRedirectID: 1} // of DNS, which is part of rules with domain names
		p = selected.DistillPolicy(e.log, owner{end.ID, e}, redirects)
		p.Ready()
		p.Detach(e.log)
		selected.Supersede()
		e.resolved[end.ID] = p
	}
	entry, _, _ := p.Lookup(key)
	return !entry.IsDeny()
}

func first[T, U any](v T, _ U, err error) (T, error) { return v, err }

// port is the number that a pod gives to a name; 0 if it does not have the name.
func (e *policyEngine) port(id identity.NumericIdentity, name string, protocol u8proto.U8proto) uint16 {
	pod := e.pods[id]
	if pod == nil {
		return 0
	}
	for _, container := range containers(pod, true) {
		for _, p := range container.Ports {
			if p.Name == name && string(cmp.Or(p.Protocol, corev1.ProtocolTCP)) == protocol.String() {
				return uint16(p.ContainerPort)
			}
		}
	}
	return 0
}

// GetNamedPorts is how the engine asks for the named ports of servers.
func (e *policyEngine) GetNamedPorts() ciliumtypes.NamedPortMultiMap { return namedPorts{e} }

type namedPorts struct{ *policyEngine }

func (n namedPorts) GetNamedPort(name string, protocol u8proto.U8proto, of iter.Seq[identity.NumericIdentity],
) (uint16, error) {
	for _, port := range n.GetNamedPorts(name, protocol, of) {
		return port, nil
	}
	return 0, ciliumtypes.ErrUnknownNamedPort
}

func (n namedPorts) GetNamedPorts(name string, protocol u8proto.U8proto, of iter.Seq[identity.NumericIdentity],
) ciliumtypes.NidPortSeq {
	return func(yield func(identity.NumericIdentity, uint16) bool) {
		for id := range of {
			if port := n.port(id, name, protocol); port != 0 && !yield(id, port) {
				return
			}
		}
	}
}

func (namedPorts) Len() int { return 1 }

// owner is the endpoint of a policy.
type owner struct {
	id     identity.NumericIdentity
	engine *policyEngine
}

func (o owner) GetID() uint64 { return uint64(o.id) }

func (o owner) GetIngressNamedPort(name string, protocol u8proto.U8proto) uint16 {
	return o.engine.port(o.id, name, protocol)
}

func (owner) PolicyDebug(string, ...any) {}

func (owner) IsHost() bool { return false }

func (owner) PreviousMapStateSizes() policy.MapStateSizes { return policy.MapStateSizes{} }

func (owner) RegenerateIfAlive(*endpoint.ExternalRegenerationMetadata) <-chan bool {
	done := make(chan bool)
	close(done)
	return done
}

type noMetrics struct{}

func (noMetrics) AddRule(types.PolicyEntry) {}

func (noMetrics) DelRule(types.PolicyEntry) {}
