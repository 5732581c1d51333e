package core_test

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// protectionOf are those patches that are about finalizers.
func protectionOf(patches []allocate.Patch) (out []allocate.Finalizers) {
	for _, p := range patches {
		if p.Finalizers != nil {
			out = append(out, *p.Finalizers)
		}
	}
	return out
}

// A network has the finalizer from its first event until it is deleted and its last pod is gone.
func TestProtection(t *testing.T) {
	for _, name := range []cluster.Name{{Namespace: "shop", Name: "blue"}, {Name: "blue"}} {
		w := newWorld(t)
		w.put(&cluster.Node{Name: "n", UID: "uid-n"}, &cluster.Namespace{Name: "shop", UID: "uid-s"})
		all := cluster.NewLabelSelector()
		network := func(deleting bool, finalizers string) *cluster.UserNetwork {
			return &cluster.UserNetwork{Name: name, UID: "u", Selects: &all, Deleting: deleting, Finalizers: finalizers,
				Protected: finalizers != "", Network: &cluster.Network{Name: names.Defined(name.Namespace, name.Name),
					Topology: cluster.Layer2, UserDefined: true}}
		}
		pod := &cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: "p"}, UID: "uid-p", Node: "n",
			Attachments: []cluster.Attachment{{Network: "shop.blue", Interface: "net1"}}}
		const mine = `["k8s.ovn.org/user-defined-network-protection"]`
		add := allocate.Finalizers{Name: cluster.Finalizer}
		remove := allocate.Finalizers{Name: cluster.Finalizer, Found: mine, Remove: true}
		for _, step := range []struct {
			what string
			ref  cluster.Ref
			seen cluster.Object
			want *allocate.Finalizers
		}{
			{"a network", network(false, "").Ref(), network(false, ""), &add},
			{"the echo", network(false, "").Ref(), network(false, mine), nil},
			{"a pod", pod.Ref(), pod, nil},
			{"somebody removes the finalizer", network(false, "").Ref(), network(false, ""), &add},
			{"the echo again", network(false, "").Ref(), network(false, mine), nil},
			{"somebody deletes the network", network(true, mine).Ref(), network(true, mine), nil},
			{"the pod goes", pod.Ref(), nil, &remove},
		} {
			got := protectionOf(w.Step([]cluster.Event{{Ref: step.ref, New: step.seen}}).Patches)
			if (step.want == nil) != (len(got) == 0) || step.want != nil && (len(got) != 1 || got[0] != *step.want) {
				t.Errorf("%s: %s: %+v, want %+v", name, step.what, got, step.want)
			}
		}
		if name.Namespace != "" { // pods of a NetworkAttachmentDefinition of the same name keep nothing
			nad := &cluster.NetworkDefinition{Name: name, UID: "uid-d", Network: &cluster.Network{
				Name: names.Defined(name.Namespace, name.Name), Topology: cluster.Layer2}}
			for _, o := range []cluster.Object{nad, pod, network(false, mine)} {
				w.Step([]cluster.Event{{Ref: o.Ref(), New: o}})
			}
			r := w.Step([]cluster.Event{{Ref: network(true, mine).Ref(), New: network(true, mine)}})
			if got := protectionOf(r.Patches); len(got) != 1 || got[0] != remove {
				t.Errorf("%s: a network that a definition hides is deleted: %+v", name, got)
			}
			// Nobody has seen the patch when the definition goes.
			w.Step([]cluster.Event{{Ref: pod.Ref()}})
			if got := protectionOf(w.Step([]cluster.Event{{Ref: nad.Ref()}}).Patches); len(got) != 1 || got[0] != remove {
				t.Errorf("%s: the definition goes: %+v", name, got)
			}
		}
		w.Step([]cluster.Event{{Ref: network(true, "").Ref()}})
		r := w.Step([]cluster.Event{{Ref: network(true, mine).Ref(), New: network(true, mine)}})
		if got := protectionOf(r.Patches); len(got) != 1 || got[0] != remove {
			t.Errorf("%s: a network without pods is deleted: %+v", name, got)
		}
	}
}
