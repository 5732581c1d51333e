package index

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// alikePods remembers which selections pods of a namespace are among that have the same labels, as those of a
// Deployment have: most pods are like one that was seen before. The zero value remembers nothing.
type alikePods struct {
	lists map[string]map[cluster.Labels][]*Selection // by namespace
	size  int                                        // of all lists, each with what it holds and one more
}

// alikeMax is how large all lists of a network may be. Then they are forgotten: each keeps its labels in memory, also
// those that no pod has any more.
const alikeMax = 10_000

// get returns the list; ok is false when it is not remembered. The caller must not change the list.
func (a *alikePods) get(namespace string, labels cluster.Labels) (list []*Selection, ok bool) {
	list, ok = a.lists[namespace][labels]
	return list, ok
}

func (a *alikePods) put(namespace string, labels cluster.Labels, list []*Selection) {
	if a.size += 1 + len(list); a.size > alikeMax {
		*a = alikePods{size: 1 + len(list)}
	}
	if a.lists == nil {
		a.lists = map[string]map[cluster.Labels][]*Selection{}
	}
	if a.lists[namespace] == nil {
		a.lists[namespace] = map[cluster.Labels][]*Selection{}
	}
	a.lists[namespace][labels] = list
}

// forget forgets the lists of a namespace, or of all namespaces if it is "": a selection came or went, or the
// namespace's labels changed.
func (a *alikePods) forget(namespace string) {
	if namespace == "" {
		*a = alikePods{}
		return
	}
	for _, list := range a.lists[namespace] {
		a.size -= 1 + len(list)
	}
	delete(a.lists, namespace)
}
