package local

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/reflector"
)

// apiServer watches the one EndpointSlice that the API servers keep of themselves. The watch starts when somebody needs
// it.
type apiServer struct {
	slices  *table[*cluster.EndpointSlice]
	watch   reflector.Watch
	needed  chan struct{} // closed by need
	need    func()
	refused atomic.Bool // by the API server, which does not let this agent read the slice
}

func newAPIServer(k kinds.Kind, notify func()) *apiServer {
	s := &apiServer{needed: make(chan struct{})}
	s.need = sync.OnceFunc(func() { close(s.needed) })
	s.slices = newTable(decodeWith[*cluster.EndpointSlice](k), equal,
		func([]change[*cluster.EndpointSlice]) { notify() }, notify)
	s.watch = reflector.Watch{Kind: k, Sink: s.slices, Selector: fields.AndSelectors(
		fields.OneTermEqualSelector("metadata.namespace", "default"),
		fields.OneTermEqualSelector("metadata.name", "kubernetes")).String(),
		Refused: func(err error) { // nil: it is not refused any more
			if refused := err != nil; s.refused.Swap(refused) != refused {
				notify()
			}
		}}
	return s
}

func (s *apiServer) run(ctx context.Context, w *Watcher) {
	select {
	case <-ctx.Done():
	case <-s.needed:
		s.watch.Run(ctx, w.clients)
	}
}

// APIServers are the addresses of the API servers, as they say themselves. There are none when this agent may not read
// them. ok is false until that is known. The first call starts the watch.
func (w *Watcher) APIServers() (addrs []netip.Addr, ok bool) {
	w.api.need()
	ok = w.api.slices.isListed() || w.api.refused.Load() // before the list is read, which may come meanwhile
	list, _ := w.api.slices.all()
	for _, s := range list {
		for _, e := range s.Endpoints {
			addrs = append(addrs, e.Addr)
		}
	}
	return addrs, ok
}

// Server is the API server's URL, as this agent connects to it.
func (w *Watcher) Server() string { return w.clients.Server }
