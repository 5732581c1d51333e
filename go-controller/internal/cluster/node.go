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

// Inherit fills in what a node that was set up by hand under the same name has
// and n does not say, and tells it as annotations that n is to get.
func (n *Node) Inherit(byHand *Node) map[string]string {
	got := map[string]string{}
	have := n.Annotations()
	for k, v := range byHand.Annotations() {
		if _, said := have[k]; !said {
			got[k] = v
		}
	}
	if n.AnnotatedAs != "" || n.JoinAs != "" {
		return nil // what is malformed is for assign to judge
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

// WithByHand is objects and the nodes that were set up by hand. A Node object of
// the same name counts for more, and is there with what it inherits.
func WithByHand(objects []Object, byHand []*Node) []Object {
	left := map[string]*Node{}
	for _, n := range byHand {
		left[n.Name] = n
	}
	out := make([]Object, 0, len(objects)+len(byHand))
	for _, o := range objects {
		if n, ok := o.(*Node); ok && left[n.Name] != nil {
			heir := *n
			heir.Inherit(left[n.Name])
			delete(left, n.Name)
			o = &heir
		}
		out = append(out, o)
	}
	for _, n := range byHand {
		if left[n.Name] != nil {
			out = append(out, n)
		}
	}
	return out
}
