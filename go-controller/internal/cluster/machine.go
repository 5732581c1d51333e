package cluster

import (
	"cmp"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Machine is the virtual machine that runs in a pod, in the pod's namespace; "" for none. While a machine moves to
// another node, it has two pods: see StandsBy.
func (p *Pod) Machine() string {
	name, _ := p.Labels.Get(annotation.MachineLabel)
	return name
}

// SameMachine is true for two pods of one virtual machine.
func (p *Pod) SameMachine(q *Pod) bool {
	return p.Name != q.Name && p.Name.Namespace == q.Name.Namespace && p.Machine() != "" && p.Machine() == q.Machine()
}

// OtherPods lists the other pods of the virtual machine that runs in a pod, sorted.
func (s *State) OtherPods(p *Pod) (out []Name) {
	machine := p.Machine()
	if machine == "" {
		return nil
	}
	for _, n := range s.podsByMachine[Name{p.Name.Namespace, machine}].Sorted() {
		if n != p.Name {
			out = append(out, n)
		}
	}
	return out
}

// StandsBy is true for an interface with which a virtual machine does not work, though the pod has the machine's
// addresses in the network: the machine runs in another pod. It runs in the newest of those where it has arrived, else
// in the oldest.
func (s *State) StandsBy(p *Pod, n names.Network, iface string) bool {
	of := s.In(n).PodNetworks
	own, granted := of[PodPort{p.Name, iface}]
	for _, name := range s.OtherPods(p) {
		q := s.Pods[name]
		has, in := of[PodPort{name, iface}]
		if granted && in && q.WantsNetwork() && has.MAC == own.MAC && runsRather(q, p) {
			return true
		}
	}
	return false
}

// runsRather is true if a virtual machine runs in p rather than in q.
func runsRather(p, q *Pod) bool {
	older := cmp.Or(cmp.Compare(p.Created, q.Created), CompareNames(p.Name, q.Name)) < 0
	switch {
	case p.Arrived && q.Arrived:
		return !older
	case p.Arrived || q.Arrived:
		return p.Arrived
	}
	return older
}
