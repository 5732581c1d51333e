package kinds

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// port adds what an item of a rule's protocols matches: one of its fields must be there.
func (c *clusterRuleDecoder) port(field string, p v1alpha2.ClusterNetworkPolicyProtocol) {
	given := map[cluster.Protocol]*v1alpha2.Port{}
	if p.TCP != nil {
		given[cluster.TCP] = p.TCP.DestinationPort
	}
	if p.UDP != nil {
		given[cluster.UDP] = p.UDP.DestinationPort
	}
	if p.SCTP != nil {
		given[cluster.SCTP] = p.SCTP.DestinationPort
	}
	if named := p.DestinationNamedPort != ""; named == (len(given) == 1) || len(given) > 1 {
		c.bad(reasonPolicyPort, "%s: want one of tcp, udp, sctp and destinationNamedPort", field)
		return
	}
	for protocol, port := range given {
		c.number(field, protocol, port)
	}
	if name := p.DestinationNamedPort; name != "" {
		c.named(field, name)
	}
}

// number adds a port by number, or a range.
func (c *clusterRuleDecoder) number(field string, protocol cluster.Protocol, p *v1alpha2.Port) {
	out := cluster.PolicyPort{Protocol: protocol}
	switch {
	case p == nil || (p.Number == 0) == (p.Range == nil):
		c.bad(reasonPolicyPort, "%s: want destinationPort with one of number and range", field)
		return
	case p.Range == nil:
		out.First = portNumber(p.Number)
		if out.Last = out.First; out.First == 0 {
			c.bad(reasonPolicyPort, "%s: destinationPort %d, want a number from 1 to 65535", field, p.Number)
		}
	default:
		out.First, out.Last = portNumber(p.Range.Start), portNumber(p.Range.End)
		if out.First == 0 || out.Last < out.First {
			c.bad(reasonPolicyPort, "%s: destinationPort from %d to %d, want numbers from 1 to 65535 in their order", field,
				p.Range.Start, p.Range.End)
		}
	}
	c.out.Ports = append(c.out.Ports, out)
}

// named adds a port by name. The API does not say of which protocol, so it is each one. Only pods have named ports.
func (c *clusterRuleDecoder) named(field, name string) {
	if len(validation.IsValidPortName(name)) > 0 {
		c.bad(reasonPolicyPort, "%s: destinationNamedPort %.64q, want the name of a container's port", field, name)
	}
	for _, p := range c.out.Peers {
		if p.Pods == nil {
			c.bad(reasonPolicyPort, "%s: destinationNamedPort with nodes, networks or domainNames, want peers that are pods",
				field)
		}
	}
	for _, protocol := range cluster.Protocols() {
		c.out.Ports = append(c.out.Ports, cluster.PolicyPort{Protocol: protocol, Name: name})
	}
}
