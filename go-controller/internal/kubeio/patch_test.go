package kubeio

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// A patch asks for no more than metadata, and its answer is not read.
func TestPatchAnswersAreNotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept"); !strings.HasPrefix(got, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;") {
			t.Errorf("a patch accepts %q, want metadata as protobuf first", got)
		}
		if got := r.Header.Get("Content-Type"); got != "application/merge-patch+json" {
			t.Errorf("a patch is %q, want a merge patch", got)
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		fmt.Fprint(w, "what nobody reads")
	}))
	t.Cleanup(server.Close)
	clients, err := NewClients(config.Kubernetes{APIServer: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := clients.Patch(t.Context(), podPatch("ns", "p", "x")); err != nil {
		t.Errorf("a patch: %v", err)
	}
}
