package local

import "github.com/northbound-net/northbound/go-controller/internal/cluster"

// Services are all services but headless ones, in no order, and a number that differs after each change of them. ok is
// false until they have been listed. They must not be modified.
func (w *Watcher) Services() (list []*cluster.Service, version uint64, ok bool) {
	if !w.services.isListed() {
		return nil, 0, false
	}
	list, version = w.services.all()
	return list, version, true
}

// servicesChanged has the slices of the services kept as the services need it.
func (w *Watcher) servicesChanged(changes []change[*cluster.Service]) {
	for _, c := range changes {
		w.slices.follow(c.name, c.now != nil && c.now.LocalFromOutside())
	}
	w.notify()
}
