package reflector

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// booting is an API server that forbids everything, until it serves lists without a Service.
type booting struct {
	serves  atomic.Bool
	refused atomic.Int64
}

func (b *booting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch q := r.URL.Query(); {
	case !b.serves.Load():
		b.refused.Add(1)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case q.Get("watch") != "":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		fmt.Fprint(w, `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

// outage is a listener that closes each connection at once while it is away.
type outage struct {
	net.Listener
	away  atomic.Bool
	tries atomic.Int64 // while it is away
}

func (o *outage) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil || !o.away.Load() {
			return c, err
		}
		o.tries.Add(1)
		c.Close()
	}
}

// A server that goes away, comes back and still forbids everything for a while is listed again within seconds.
func TestBackAfterServerBoots(t *testing.T) {
	api := &booting{}
	api.serves.Store(true)
	server := httptest.NewUnstartedServer(api)
	network := &outage{Listener: server.Listener}
	server.Listener = network
	server.Start()
	defer server.Close()
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	sink := newNames()
	w := Watch{Kind: kinds.Service(), Sink: sink, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx, clients) })
	defer running.Wait()
	defer cancel()
	<-sink.listed
	several := func(what string, count *atomic.Int64) {
		t.Helper()
		testkit.Eventually(t, what, func() string {
			if n := count.Load(); n < 3 {
				return fmt.Sprint(n)
			}
			return ""
		})
	}
	network.away.Store(true)
	server.CloseClientConnections()
	several("tries to connect", &network.tries)
	api.serves.Store(false)
	network.away.Store(false)
	several("requests that are forbidden", &api.refused)
	api.serves.Store(true)
	back := time.Now()
	if took := (<-sink.listed).Sub(back); took > 6*time.Second { // 3 s, and as much for a slow machine
		t.Errorf("listed again %s after the server served again", took)
	}
}
