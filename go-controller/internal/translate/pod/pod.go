package pod

import (
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
)

// Translator translates pods.
type Translator struct{ Schema *nb.Schema }

// Kind implements translate.Translator.
func (Translator) Kind() names.Kind { return names.KindPod }

func owner(n cluster.Name) nb.Owner { return nb.Owner{Kind: names.KindPod, Name: n.String()} }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindPod, s.Pods, cluster.Name.String)
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{Kinds: []cluster.Kind{cluster.KindPod, cluster.KindNode}}
}

// Affected implements translate.Translator. A node alters its pods' ports when it is added, deleted or made anew, and
// when its chassis becomes known or another node's.
func (Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	switch c.Ref.Kind {
	case cluster.KindPod:
		old, _ := c.Old.(*cluster.Pod)
		now, _ := c.New.(*cluster.Pod)
		if !c.Granted && old != nil && now != nil && old.SamePlace(now) && old.Bandwidth == now.Bandwidth {
			return nil // only annotations with addresses differ: package allocate grants what follows from that
		}
		return []nb.Owner{owner(c.Ref.Name)}
	case cluster.KindNode:
		old, _ := c.Old.(*cluster.Node)
		now, _ := c.New.(*cluster.Node)
		nodes := c.About(index.NodeChassis)
		if !c.Granted && (old == nil || now == nil || old.UID != now.UID) && !slices.Contains(nodes, c.Ref.Name) {
			nodes = append(nodes, c.Ref.Name)
		}
		var out []nb.Owner
		for _, node := range nodes {
			for _, n := range s.PodsOn(node.Name) {
				out = append(out, owner(n))
			}
		}
		return out
	}
	return nil
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.Pods[cluster.ParseName(o.Name)]
	if p == nil || !p.WantsNetwork() {
		return translate.Rows{}, nil
	}
	net, granted := s.PodNetworks[p.Name]
	node := s.Nodes[p.Node]
	if !granted || node == nil {
		return translate.Rows{}, nil
	}
	address := net.MAC.String()
	for _, a := range cluster.PodAddrs(net) {
		address += " " + a.String()
	}
	options := map[string]string{"requested-chassis": index.ChassisOf(s).Of(node.Name)}
	if p.UID != "" {
		options["iface-id-ver"] = p.UID
	}
	sw := nb.Ref{Table: nbdb.LogicalSwitchTable,
		UUID: names.NodeRow(nbdb.LogicalSwitchTable, node.Name, names.RoleSwitch, node.UID)}
	m := translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}
	port := m.Row(names.RolePort, &nbdb.LogicalSwitchPort{
		Name: names.LogicalPort(p.Name.Namespace, p.Name.Name), Options: options,
		Addresses: []string{address}, PortSecurity: []string{address},
		ExternalIDs: map[string]string{names.KeyPod: "true", names.KeyNamespace: p.Name.Namespace},
	}, nb.Slot{In: sw, Column: "ports"})
	return translate.Rows{Rows: append([]nb.Row{port}, limits(m, p, sw)...)}, nil
}
