package write

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// Patches have connections of their own with HTTP/1.1, beside the HTTP/2 of
// everything else, and ask for metadata only; the answer is not read.
func TestPatchesUseHTTP1(t *testing.T) {
	var mu sync.Mutex
	protos := map[string]string{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		protos[r.Method] = r.Proto
		mu.Unlock()
		if r.Method == http.MethodPatch {
			if got := r.Header.Get("Accept"); !strings.HasPrefix(got,
				"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;") {
				t.Errorf("a patch accepts %q, want metadata as protobuf first", got)
			}
			if got := r.Header.Get("Content-Type"); got != "application/json-patch+json" {
				t.Errorf("a patch is %q, want a JSON patch", got)
			}
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			fmt.Fprint(w, "what nobody reads")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"gitVersion":"v1.36.0"}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	clients, err := client.New(config.Kubernetes{APIServer: server.URL, CACert: ca}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := Patch(t.Context(), clients, kinds.All(), podPatch("ns", "p", "x")); err != nil {
		t.Errorf("a patch: %v", err)
	}
	if _, err := clients.Version(t.Context()); err != nil {
		t.Errorf("another request: %v", err)
	}
	if protos[http.MethodPatch] != "HTTP/1.1" || protos[http.MethodGet] != "HTTP/2.0" {
		t.Errorf("%v, want patches over HTTP/1.1 and the rest over HTTP/2.0", protos)
	}
}
