package pod

import (
	"slices"
	"strconv"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
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

// Atomic implements translate.Atomic. A new pod's port and its memberships are one owner's rows.
func (Translator) Atomic() translate.Atomicity { return translate.OfExisting }

// Owners implements translate.Translator.
func (Translator) Owners(s *cluster.State) []nb.Owner {
	return nb.Owners(names.KindPod, s.Pods, cluster.Name.String)
}

// Depends implements translate.Translator.
func (Translator) Depends() translate.Dependencies {
	return translate.Dependencies{
		Kinds:    []cluster.Kind{cluster.KindPod, cluster.KindNode},
		Subjects: []cluster.Subject{index.PodPoliciesOf, index.MulticastOf, index.TenantOf, index.PrimaryOf},
	}
}

// Affected implements translate.Translator.
func (Translator) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	var out []nb.Owner
	for _, pod := range append(changed(s, c), c.About(index.PodPoliciesOf)...) {
		out = append(out, owner(pod))
	}
	for _, namespace := range slices.Concat(c.About(index.MulticastOf), c.About(index.TenantOf),
		c.About(index.PrimaryOf)) {
		if !index.AddressesOf(s).Any(namespace.Name) { // such as a new one: no pod of it has a port
			continue
		}
		for pod := range s.Pods {
			if pod.Namespace == namespace.Name {
				out = append(out, owner(pod))
			}
		}
	}
	return out
}

// changed lists the pods whose ports may differ after a change of a pod or a node. A node alters its pods' ports when
// it is added, deleted or made anew, and when its chassis becomes known or another node's.
func changed(s *cluster.State, c cluster.Change) (out []cluster.Name) {
	switch c.Ref.Kind {
	case cluster.KindPod:
		old, _ := c.Old.(*cluster.Pod)
		now, _ := c.New.(*cluster.Pod)
		if !c.Granted && old != nil && now != nil && old.SamePlace(now) && old.Bandwidth == now.Bandwidth &&
			old.Opens == now.Opens && old.Arrived == now.Arrived {
			return nil // only annotations with addresses differ: package allocate grants what follows from that
		}
		if old != nil && now != nil && old.Arrived != now.Arrived {
			out = s.MovesWith(now)
		}
		out = append(out, c.Ref.Name)
	case cluster.KindNode:
		old, _ := c.Old.(*cluster.Node)
		now, _ := c.New.(*cluster.Node)
		nodes := c.About(index.NodeChassis)
		if !c.Granted && (old == nil || now == nil || old.UID != now.UID) && !slices.Contains(nodes, c.Ref.Name) {
			nodes = append(nodes, c.Ref.Name)
		}
		for _, node := range nodes {
			out = append(out, s.PodsOn(node.Name)...)
		}
		out = append(out, namesakes(s, old, now)...)
	}
	return out
}

// Rows implements translate.Translator.
func (t Translator) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	p := s.Pods[cluster.ParseName(o.Name)]
	if p == nil || !p.WantsNetwork() {
		return translate.Rows{}, nil
	}
	node := s.Nodes[p.Node]
	if node == nil {
		return translate.Rows{}, nil
	}
	if reports := reserved(s, p); len(reports) > 0 {
		return translate.Rows{Reports: reports}, nil
	}
	r := podRows{
		Maker: translate.Maker{Schema: t.Schema, Owner: o, UID: p.UID}, pod: p, node: node,
		chassis: index.ChassisOf(s).Of(node.Name), policies: index.PoliciesOf(s).OfPod(p.Name),
		further: index.FurtherPoliciesOf(s), tenant: index.TenantsOf(s).Of(p.Name.Namespace),
		limit: s.Config.MaxPodConnections,
	}
	r.locked, r.opens = s.Locked(p.Name), s.Opens(p) != cluster.OpenPorts{}
	if r.locked {
		only := index.PodPolicies{Ingress: true}
		if r.opens {
			only.Subjects = r.policies.Subjects // ClusterNetworkPolicies': others are about the primary network
		}
		r.policies = only
	} else if s.Config.Multitenant && r.tenant == "" {
		return translate.Rows{}, nil // until its Namespace is known: nothing would keep other tenants from the pod
	}
	if ns := s.Namespaces[p.Name.Namespace]; ns != nil && ns.Multicast && !r.locked {
		r.multicast = ns
	}
	var rows []nb.Row
	for a := range s.Attachments(p) {
		net, granted := s.In(a.Network).PodNetworks[cluster.PodPort{Pod: p.Name, Interface: a.Interface}]
		if granted {
			rows = append(rows, r.port(a, s.Networks[a.Network], net, s.StandsBy(p, a.Network, a.Interface))...)
		}
	}
	return translate.Rows{Rows: rows}, nil
}

// podRows makes the rows of one pod.
type podRows struct {
	translate.Maker
	pod     *cluster.Pod
	node    *cluster.Node
	chassis string
	// policies is what policies make of the interface that Kubernetes asks for.
	policies index.PodPolicies
	further  *index.FurtherPolicies // about the other interfaces
	// multicast is the pod's namespace if its pods may use multicast; nil otherwise.
	multicast *cluster.Namespace
	tenant    string // of the pod's namespace; "" without tenants
	locked    bool   // only the node's own processes reach the pod in the cluster's own network, whatever policies allow
	opens     bool   // it is locked, but for some ports
	limit     int    // of the connections that are tracked for an interface; 0 for none
}

// port is the logical port of an interface. The limits of bandwidth are for the interface that Kubernetes asks for. A
// port that stands by passes nothing: its virtual machine works with the same addresses in another pod.
func (r podRows) port(
	a cluster.Attachment, network *cluster.Network, net annotation.PodNetwork, standsBy bool,
) []nb.Row {
	address := net.MAC.String()
	for _, ip := range cluster.PodAddrs(net) {
		address += " " + ip.String()
	}
	model := &nbdb.LogicalSwitchPort{Addresses: []string{address}, PortSecurity: []string{address}}
	if standsBy { // with the addresses, packets for the machine would come here
		model.Addresses, model.Enabled = nil, new(bool)
	}
	options := map[string]string{"requested-chassis": r.chassis}
	if r.pod.UID != "" {
		options["iface-id-ver"] = r.pod.UID
	}
	if r.limit > 0 {
		options["ct-zone-limit"] = strconv.Itoa(r.limit) // ovn-nb(5), Logical_Switch_Port
	}
	sw := nb.Ref{Table: nbdb.LogicalSwitchTable, UUID: network.SwitchRow(nbdb.LogicalSwitchTable, r.node)}
	name := a.Name().LogicalPort(r.pod.Name.Namespace, r.pod.Name.Name, a.Interface)
	lists := []nb.Slot{{In: sw, Column: "ports"}}
	if a.Interface == "" {
		lists = append(lists, r.groups()...)
	} else {
		lists = append(lists, r.groupsIn(a.Network)...)
	}
	model.Name, model.Options = name, options
	model.ExternalIDs = map[string]string{names.KeyPod: "true", names.KeyNamespace: r.pod.Name.Namespace}
	port := r.Row(a.Network.PortRole(a.Interface), model, lists...)
	if a.Interface != "" {
		return []nb.Row{port}
	}
	return append([]nb.Row{port}, limits(r.Maker, r.pod, name, sw)...)
}

// slot lists a port in a port group.
func slot(uuid string) nb.Slot {
	return nb.Slot{In: nb.Ref{Table: nbdb.PortGroupTable, UUID: uuid}, Column: "ports"}
}

// groupsIn lists the port groups that policies apply to in a network other than the cluster's own.
func (r podRows) groupsIn(n names.Network) (out []nb.Slot) {
	p := r.further.In(n).OfPod(r.pod.Name)
	for _, hash := range p.Subjects {
		out = append(out, slot(names.SelectorRow(nbdb.PortGroupTable, hash, names.RoleGroup)))
	}
	if p.Ingress {
		out = append(out, slot(names.NetworkIsolationRow(nbdb.PortGroupTable, n, names.RoleGroupIn)))
	}
	if p.Egress {
		out = append(out, slot(names.NetworkIsolationRow(nbdb.PortGroupTable, n, names.RoleGroupOut)))
	}
	return out
}

// groups lists the port groups that policies apply to. They are slots of the port itself: a port that comes is in them
// from its first moment.
func (r podRows) groups() []nb.Slot {
	var out []nb.Slot
	in := func(uuid string) { out = append(out, slot(uuid)) }
	if r.multicast != nil {
		in(names.RowUUID(nbdb.PortGroupTable, names.KindNamespace, r.multicast.Name, names.RoleMcastGroup, r.multicast.UID))
	}
	if r.tenant != "" && r.tenant != cluster.GlobalTenant && (!r.locked || r.opens) {
		in(names.TenantRow(nbdb.PortGroupTable, r.tenant, names.RoleGroup))
	}
	for _, hash := range r.policies.Subjects {
		in(names.SelectorRow(nbdb.PortGroupTable, hash, names.RoleGroup))
	}
	if r.policies.Ingress {
		in(names.IsolationRow(nbdb.PortGroupTable, r.node.Name, names.RoleGroupIn, r.node.UID))
	}
	if r.locked {
		in(names.IsolationRow(nbdb.PortGroupTable, r.node.Name, names.RoleGroupLocked, r.node.UID))
	}
	if r.policies.Egress {
		in(names.IsolationRow(nbdb.PortGroupTable, r.node.Name, names.RoleGroupOut, r.node.UID))
	}
	return out
}
