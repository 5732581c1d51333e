package cluster

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Reasons of the Problems that a Node's annotations lead to.
const (
	ReasonGatewayRefused = "GatewayConfigRefused"
	ReasonByHandRefused  = "ByHandRecordRefused"
)

// ReadAnnotations takes what a node's annotations say of it. A gateway
// configuration that can't be read is a Problem: the node is then no gateway.
func (n *Node) ReadAnnotations(a map[string]string) []Problem {
	n.ChassisID = a[annotation.NodeChassisID]
	if raw, ok := a[annotation.NodeSubnets]; ok {
		subnets, err := annotation.ParseNodeSubnets(raw)
		n.Annotated = subnets
		if err != nil {
			n.AnnotatedAs = err.Error()
		}
	}
	if raw, ok := a[annotation.GatewayJoinAddrs]; ok {
		addrs, err := annotation.ParseGatewayJoinAddrs(raw)
		n.JoinAnnotated = addrs
		if err != nil {
			n.JoinAs = err.Error()
		}
	}
	if raw, ok := a[annotation.L3GatewayConfig]; ok {
		gateway, err := annotation.ParseL3Gateway(raw)
		if err != nil {
			return []Problem{{Ref: n.Ref(), UID: n.UID, Reason: ReasonGatewayRefused, Message: err.Error() + ": the node is no gateway"}}
		}
		n.Gateway = gateway
	}
	return nil
}

// NodeRecord says that the Northbound database has the record of a node that was
// set up by hand.
type NodeRecord struct{ Node *Node }

// Ref implements Object.
func (r *NodeRecord) Ref() Ref { return Ref{KindNodeRecord, Name{Name: r.Node.Name}} }

// Equal implements Object.
func (r *NodeRecord) Equal(o Object) bool {
	q, ok := o.(*NodeRecord)
	return ok && r.Node.Equal(q.Node)
}

// GatewayDown says that the monitor of gateways found the gateway of a node down.
type GatewayDown struct{ Node string }

// Ref implements Object.
func (d *GatewayDown) Ref() Ref { return Ref{KindGatewayDown, Name{Name: d.Node}} }

// Equal implements Object.
func (d *GatewayDown) Equal(o Object) bool {
	e, ok := o.(*GatewayDown)
	return ok && *d == *e
}

// Annotations is the inverse of ReadAnnotations: what is known of the node, as
// annotations.
func (n *Node) Annotations() map[string]string {
	out := map[string]string{}
	if len(n.Annotated) > 0 {
		out[annotation.NodeSubnets] = annotation.MarshalNodeSubnets(n.Annotated)
	}
	if n.ChassisID != "" {
		out[annotation.NodeChassisID] = n.ChassisID
	}
	if n.Gateway != nil {
		out[annotation.L3GatewayConfig] = annotation.MarshalL3Gateway(n.Gateway)
	}
	if len(n.JoinAnnotated) > 0 {
		out[annotation.GatewayJoinAddrs] = annotation.MarshalGatewayJoinAddrs(n.JoinAnnotated)
	}
	return out
}

// Outage is why the node's gateway is out of service, "" when it is not, or the
// node is no gateway. What the agent said last is of no account once the node
// is not heard of.
func (n *Node) Outage() string {
	switch {
	case n.Gateway == nil:
		return ""
	case n.Unreachable, n.NoLease:
		return "the node is not heard of: its agent and its kubelet renew their Leases no more, or its condition Ready is Unknown"
	default:
		return n.Gateway.Out
	}
}

// ParseByHand reads the record that a node set up by hand leaves in the
// Northbound database, where there is no Node object to annotate: the
// annotations as one JSON object, those that are JSON themselves as such.
func ParseByHand(name, record string) (*Node, []Problem) {
	n := &Node{Name: name, ByHand: true}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(record), &raw); err != nil {
		return n, []Problem{{Ref: n.Ref(), Reason: ReasonByHandRefused,
			Message: fmt.Sprintf("the record of the node that was set up by hand is not a JSON object of annotations: %.300q: set the node up again", record)}}
	}
	a := map[string]string{}
	for k, v := range raw {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		a[k] = text
	}
	return n, n.ReadAnnotations(a)
}

// ByHandRecord is the inverse of ParseByHand. The same node always gives the
// same bytes.
func (n *Node) ByHandRecord() string {
	record := map[string]any{}
	for k, v := range n.Annotations() {
		record[k] = v
		if strings.HasPrefix(v, "{") && json.Valid([]byte(v)) {
			record[k] = json.RawMessage(v)
		}
	}
	b, err := json.Marshal(record) // keys come sorted
	if err != nil {
		return "" // of strings and valid JSON: it can't be
	}
	return string(b)
}

// Adopt fills in what a node that was set up by hand under the same name has and
// n does not say. It returns that as annotations, which n is to get.
func (n *Node) Adopt(byHand *Node) map[string]string {
	got := map[string]string{}
	have := n.Annotations()
	for k, v := range byHand.Annotations() {
		if _, said := have[k]; !said {
			got[k] = v
		}
	}
	if n.AnnotatedAs != "" || n.JoinAs != "" {
		return nil // what is malformed is for allocate to judge
	}
	if len(got) == 0 {
		return nil
	}
	if _, ok := got[annotation.NodeSubnets]; ok {
		n.Annotated = byHand.Annotated
	}
	if _, ok := got[annotation.NodeChassisID]; ok {
		n.ChassisID = byHand.ChassisID
	}
	if _, ok := got[annotation.L3GatewayConfig]; ok {
		n.Gateway = byHand.Gateway
	}
	if _, ok := got[annotation.GatewayJoinAddrs]; ok {
		n.JoinAnnotated = byHand.JoinAnnotated
	}
	return got
}
