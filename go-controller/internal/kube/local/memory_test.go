package local

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// manyServices is an API server's side of the watches of an agent. Each object is written as it is sent, so that the
// server itself holds none of them.
type manyServices struct{ services int }

func (m manyServices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	of := map[string]func(io.Writer, int){"services": writeService, "endpointslices": writeSlices}
	kinds := map[string]string{
		"services": "v1 Service", "endpointslices": "discovery.k8s.io/v1 EndpointSlice", "pods": "v1 Pod", "nodes": "v1 Node",
		"servicecidrs": "networking.k8s.io/v1 ServiceCIDR",
	}
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	version, kind, _ := strings.Cut(kinds[resource], " ")
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"9"},"items":[]}`, version, kind+"List")
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for i := range m.services {
			if write := of[resource]; write != nil {
				write(w, i)
			}
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"9",`+
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}`, version, kind)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

const manyMeta = `"metadata":{"name":"%[2]s","namespace":"team-%[1]d","uid":"6f1f3bd2-0d7a-4c56-9a3e-%012[1]d",` +
	`"resourceVersion":"%[1]d","creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"labels":{%[3]s"app.kubernetes.io/name":"shop",` +
	`"app.kubernetes.io/instance":"shop-%[1]d","app.kubernetes.io/part-of":"store"},"annotations":{"note":"made by a ` +
	`pipeline"},` +
	`"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",` +
	`"fieldsV1":{"f:spec":{}}}]}`

// writeService writes a dual-stack service of type NodePort; the first has externalTrafficPolicy Local.
func writeService(w io.Writer, i int) {
	policy := "Cluster"
	if i == 0 {
		policy = "Local"
	}
	name := fmt.Sprint("shop-", i)
	fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service",`+manyMeta, i, name, "")
	fmt.Fprintf(w,
		`,"spec":{"type":"NodePort","selector":{"app.kubernetes.io/instance":"shop-%[1]d"},"clusterIP":"10.96.%[2]d.%[3]d",`+
			`"clusterIPs":["10.96.%[2]d.%[3]d","fd02::%[1]x"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"PreferDualStack",`+
			`"internalTrafficPolicy":"Cluster","externalTrafficPolicy":%[4]q,"sessionAffinity":"None","ports":[`+
			`{"name":"http","protocol":"TCP","port":80,"targetPort":8080,"nodePort":%[5]d},`+
			`{"name":"https","protocol":"TCP","port":443,"targetPort":8443,"nodePort":%[6]d}]},`+
			`"status":{"loadBalancer":{}}}}`+"\n",
		i+1, i/250, i%250+1, policy, 20000+i, 40000+i)
}

// writeSlices writes a service's two slices, of three endpoints each, on three of 100 nodes.
func writeSlices(w io.Writer, i int) {
	for _, family := range []string{"IPv4", "IPv6"} {
		name := fmt.Sprintf("shop-%d-%s", i, strings.ToLower(family))
		fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",`)
		fmt.Fprintf(w, manyMeta+`,"addressType":%[4]q,"ports":[{"name":"http","protocol":"TCP","port":8080},`+
			`{"name":"https","protocol":"TCP","port":8443}],"endpoints":[`, i, name,
			fmt.Sprintf(`"kubernetes.io/service-name":"shop-%d",`, i), family)
		for e := range 3 {
			node, addr := (3*i+e)%100, fmt.Sprintf("10.%d.%d.%d", 128+e, i/250, i%250+2)
			if family == "IPv6" {
				addr = fmt.Sprintf("fd01:0:0:%x::%x", e, i+2)
			}
			fmt.Fprintf(w,
				`%[1]s{"addresses":[%[2]q],"nodeName":"node-%[3]d","zone":"zone-%[4]d","conditions":{"ready":true,"serving":true,`+
					`"terminating":false},"targetRef":{"kind":"Pod","namespace":"team-%[5]d","name":"shop-%[5]d-7d9c5b8f6-x%[6]d",`+
					`"uid":"0b0e7c51-52f0-4d33-b0a4-%012[5]d"}}`, strings.Repeat(",", min(e, 1)), addr, node, node%3, i, e)
		}
		fmt.Fprint(w, "]}}\n")
	}
}

// BenchmarkServicesInMemory measures what an agent holds of 10,000 services and their 20,000 slices.
func BenchmarkServicesInMemory(b *testing.B) {
	const services = 10_000
	server := httptest.NewServer(manyServices{services})
	defer server.Close()
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		heapBefore, rssBefore := memoryInUse(b)
		l, err := New(clients, kinds.All(), "node-1", slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { l.Run(ctx) })
		awaitServices(l, services)
		heap, rss := memoryInUse(b)
		b.ReportMetric(float64(heap-heapBefore)/(1<<20), "MB-heap")
		b.ReportMetric(float64(rss-rssBefore)/(1<<20), "MB-RSS-more")
		b.ReportMetric(float64(rss)/(1<<20), "MB-RSS")
		cancel()
		running.Wait()
	}
}

// memoryInUse is the heap that is reachable, and what the process holds of the machine's memory, in bytes.
func memoryInUse(b *testing.B) (heap, rss int64) {
	b.Helper()
	debug.FreeOSMemory()
	debug.FreeOSMemory() // finalizers of the first may have freed more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return int64(m.HeapAlloc), pages * int64(os.Getpagesize())
}

// An API server may stream a list as events. What an agent makes of it is the same as of a list.
func TestStreamedLists(t *testing.T) {
	server := httptest.NewServer(manyServices{3})
	t.Cleanup(server.Close)
	clients, err := client.New(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(clients, kinds.All(), "node-1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	list, slices := awaitServices(l, 3)
	if len(slices) != 1 {
		t.Errorf("endpoints of %d services, want of the one that is reached locally", len(slices))
	}
	for _, s := range list {
		of := slices[s.Name]
		switch {
		case s.LocalFromOutside() && (len(of) != 2 || len(of[0].Endpoints) != 3 || len(of[1].Endpoints) != 3):
			t.Errorf("service %s has slices %+v, want two of three endpoints", s.Name, of)
		case len(s.Ports) != 2 || len(s.ClusterIPs) != 2:
			t.Errorf("service %+v", s)
		}
	}
}

// awaitServices waits until so many services are known, and the endpoints.
func awaitServices(l *Watcher, n int) ([]*cluster.Service, map[cluster.Name][]*cluster.EndpointSlice) {
	for {
		list, _, ok := l.Services()
		slices, _, err := l.Endpoints()
		if ok && err == nil && len(list) == n {
			return list, slices
		}
		<-l.Changed()
	}
}
