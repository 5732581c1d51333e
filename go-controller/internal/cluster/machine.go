package cluster

import (
	"cmp"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Machine is the virtual machine that runs in a pod, in the pod's namespace; "" for none. While a machine moves to
// another node, it has two pods: see Grants.Moves and StandsBy.
func (p *Pod) Machine() string {
	name, _ := p.Labels.Get(annotation.MachineLabel)
	return name
}

// SameMachine is true for two pods of one virtual machine.
func (p *Pod) SameMachine(q *Pod) bool {
	return p.Name != q.Name && p.Name.Namespace == q.Name.Namespace && p.Machine() != "" && p.Machine() == q.Machine()
}

// MovesWith lists the pods that have the same addresses in a network as a pod, since a virtual machine moves between
// them.
func (s *State) MovesWith(p *Pod) (out []Name) {
	for a := range s.Attachments(p) {
		if other, moves := s.In(a.Network).Moves[PodPort{p.Name, a.Interface}]; moves {
			out = append(out, other.Pod)
		}
	}
	return out
}

// StandsBy is true for an interface with which a virtual machine does not work, though the pod has the machine's
// addresses in the network: the machine runs in another pod. It runs in the newer of the two if it has arrived there,
// else in the older.
func (s *State) StandsBy(p *Pod, n names.Network, iface string) bool {
	other, moves := s.In(n).Moves[PodPort{p.Name, iface}]
	if !moves {
		return false
	}
	q := s.Pods[other.Pod]
	return q != nil && q.WantsNetwork() && q.runsRather(p)
}

// runsRather is true if a virtual machine runs in p rather than in q.
func (p *Pod) runsRather(q *Pod) bool {
	if p.CompareAge(q) > 0 {
		return p.Arrived
	}
	return !q.Arrived
}

// CompareAge orders pods: the oldest comes first, and of those that were made in the same second the first by name.
func (p *Pod) CompareAge(q *Pod) int {
	if by := cmp.Compare(p.Created, q.Created); by != 0 {
		return by
	}
	return CompareNames(p.Name, q.Name)
}
