package kubeio

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// goneFor is how long a pod that has gone is remembered: longer than anybody
// waits for a pod.
const goneFor = 5 * time.Minute

// localGone remembers, by namespace and name, which pod went last. A runtime
// may still ask for one that was deleted by force; it would wait in vain for
// what this node's watch has already seen come and go.
type localGone struct {
	mu   *sync.Mutex
	last map[string]gonePod
}

type gonePod struct {
	uid string
	at  time.Time
}

func newLocalGone() localGone { return localGone{&sync.Mutex{}, map[string]gonePod{}} }

// uid is that of the pod of a key that went last, "" for none.
func (g localGone) uid(key string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last[key].uid
}

func (g localGone) note(obj any) {
	if final, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = final.Obj
	}
	m, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(g.last, func(_ string, p gonePod) bool { return now.Sub(p.at) > goneFor })
	g.last[m.GetNamespace()+"/"+m.GetName()] = gonePod{string(m.GetUID()), now}
}

// before is a handler that notes who goes, also when another of the same name
// has come meanwhile, and then calls next.
func (g localGone) before(next cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: next.OnAdd,
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(metav1.Object)
			a, ok2 := after.(metav1.Object)
			if ok1 && ok2 && b.GetUID() != a.GetUID() {
				g.note(before)
			}
			next.OnUpdate(before, after)
		},
		DeleteFunc: func(obj any) {
			g.note(obj)
			next.OnDelete(obj)
		},
	}
}
