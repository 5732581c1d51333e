package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Reasons of the Problems that a Node's annotations lead to.
const (
	ReasonGatewayRefused = "GatewayConfigRefused"
	ReasonByHandRefused  = "ByHandRecordRefused"
	ReasonChassisRefused = "NodeChassisRefused"
)

// ReadAnnotations sets the node's fields from its annotations. A gateway configuration that can't be parsed, or names
// the port of another, is a Problem: the node is then no gateway. A chassis that can't be one is a Problem, too: it is
// then unknown.
func (n *Node) ReadAnnotations(a map[string]string) (problems []Problem) {
	refuse := func(reason, message string) {
		problems = append(problems, Problem{Ref: n.Ref(), UID: n.UID, Reason: reason, Message: message})
	}
	if n.ChassisID = a[annotation.NodeChassisID]; !validChassis(n.ChassisID) {
		refuse(ReasonChassisRefused, fmt.Sprintf("annotation %s: %.64q: want the system-id of one Open vSwitch, of letters, "+
			"digits and any of .:_- only: it is not used", annotation.NodeChassisID, n.ChassisID))
		n.ChassisID = ""
	}
	n.Annotated, n.JoinAnnotated = a[annotation.NodeSubnets], a[annotation.GatewayJoinAddrs]
	if raw, ok := a[annotation.L3GatewayConfig]; ok {
		gateway, err := annotation.ParseL3Gateway(raw)
		if err == nil && gateway != nil {
			err = n.checkPort(gateway)
		}
		if err != nil {
			refuse(ReasonGatewayRefused, err.Error()+": the node is no gateway")
			return problems
		}
		n.Gateway = gateway
	}
	return problems
}

// maxChassis is the length of the longest chassis name: a host name may be one.
const maxChassis = 253

// validChassis is true for a name that can be one chassis. A list of several, with commas, would bind ports to all of
// them (ovn-nb(5), Logical_Switch_Port options:requested-chassis).
func validChassis(id string) bool {
	return len(id) <= maxChassis && strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".:_-", r)
	}) < 0
}

// checkPort checks that the gateway's port has the name that its bridge or NIC gives it, and no other port's.
func (n *Node) checkPort(g *annotation.L3Gateway) error {
	device, own := strings.CutSuffix(g.Port, names.LocalnetPort("", n.Name))
	if !own || g.Bridge != names.IntegrationBridge && device != g.Bridge || !names.IsInterface(device) {
		return fmt.Errorf("annotation %s: interface-id %.64q of bridge-id %.64q: want the name of the bridge, or in %s of "+
			"the NIC, with %q behind it", annotation.L3GatewayConfig, g.Port, g.Bridge, names.IntegrationBridge,
			names.LocalnetPort("", n.Name))
	}
	return nil
}

// NodeRecord is the record that the Northbound database has of a node that was set up by hand.
type NodeRecord struct{ Node *Node }

// Ref implements Object.
func (r *NodeRecord) Ref() Ref { return Ref{KindNodeRecord, Name{Name: r.Node.Name}} }

// Equal implements Object.
func (r *NodeRecord) Equal(o Object) bool {
	q, ok := o.(*NodeRecord)
	return ok && r.Node.Equal(q.Node)
}

// GatewayDown is the verdict of the gateway monitor that the gateway of a node is down.
type GatewayDown struct{ Node string }

// Ref implements Object.
func (d *GatewayDown) Ref() Ref { return Ref{KindGatewayDown, Name{Name: d.Node}} }

// Equal implements Object.
func (d *GatewayDown) Equal(o Object) bool {
	e, ok := o.(*GatewayDown)
	return ok && *d == *e
}

// Annotations is the inverse of ReadAnnotations.
func (n *Node) Annotations() map[string]string {
	out := map[string]string{}
	if n.Annotated != "" {
		out[annotation.NodeSubnets] = n.Annotated
	}
	if n.ChassisID != "" {
		out[annotation.NodeChassisID] = n.ChassisID
	}
	if n.Gateway != nil {
		out[annotation.L3GatewayConfig] = annotation.MarshalL3Gateway(n.Gateway)
	}
	if n.JoinAnnotated != "" {
		out[annotation.GatewayJoinAddrs] = n.JoinAnnotated
	}
	return out
}

// Outage is why the node's gateway is out of service, "" when it is in service or the node is no gateway. Once the node
// itself is silent, what its agent reported last no longer counts.
func (n *Node) Outage() string {
	switch {
	case n.Gateway == nil:
		return ""
	case n.Unreachable, n.LeaseExpired:
		return "the node is not heard of: its agent and its kubelet renew their Leases no more, or its condition Ready " +
			"is Unknown"
	default:
		return n.Gateway.Out
	}
}

// ParseByHand reads the record of a node that was set up by hand and may have no Node object. The record is the node's
// annotations as one JSON object. Annotations that are JSON themselves are embedded as JSON.
func ParseByHand(name, record string) (*Node, []Problem) {
	n := &Node{Name: name, ByHand: true}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(record), &raw); err != nil {
		return n, []Problem{{Ref: n.Ref(), Reason: ReasonByHandRefused, Message: fmt.Sprintf("the record of the node that "+
			"was set up by hand is not a JSON object of annotations: %.300q: set the node up again", record)}}
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

// ByHandRecord is the inverse of ParseByHand. The same node always gives the same bytes.
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
		return "" // impossible: the record is made of strings and valid JSON
	}
	return string(b)
}

// Adopt fills in the annotated values that n lacks and a node that was set up by hand under the same name has. It
// returns them as annotations, which the Node object is to get.
func (n *Node) Adopt(byHand *Node) map[string]string {
	have, got := n.Annotations(), byHand.Annotations()
	maps.DeleteFunc(got, func(k, _ string) bool { return have[k] != "" })
	if len(got) == 0 {
		return nil
	}
	for k := range got {
		switch k {
		case annotation.NodeSubnets:
			n.Annotated = byHand.Annotated
		case annotation.NodeChassisID:
			n.ChassisID = byHand.ChassisID
		case annotation.L3GatewayConfig:
			n.Gateway = byHand.Gateway
		case annotation.GatewayJoinAddrs:
			n.JoinAnnotated = byHand.JoinAnnotated
		}
	}
	return got
}
