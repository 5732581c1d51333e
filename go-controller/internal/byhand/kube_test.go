package byhand

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// An API server that answers a moment late is not gone on without. One that does not answer is, with a warning.
func TestKubeAnswersLate(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case asked.Add(1) == 1:
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n1","uid":"u"}}]}`)
		default:
			fmt.Fprint(w, `{"kind":"ServiceCIDRList","apiVersion":"networking.k8s.io/v1","items":[]}`)
		}
	}))
	defer server.Close()
	var out strings.Builder
	s := Setup{Kubernetes: &config.Kubernetes{APIServer: server.URL}, Out: &out, kube: &kube{}}
	if err := s.askKube(t.Context()); err != nil || s.kube.failure != nil || len(s.kube.nodes) != 1 || out.Len() > 0 {
		t.Errorf("late: %v, %v, %d nodes, printed %q, want one node and no word", err, s.kube.failure, len(s.kube.nodes),
			&out)
	}
	server.Close()
	s.kube = &kube{}
	if err := s.askKube(t.Context()); err != nil || s.kube.failure == nil ||
		!strings.Contains(out.String(), "going on without the API server: ") {
		t.Errorf("never: %v, %v, printed %q, want a warning", err, s.kube.failure, &out)
	}
}
