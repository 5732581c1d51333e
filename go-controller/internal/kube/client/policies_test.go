package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// The old kinds of policies are named if the API server has them.
func TestOldPolicyKinds(t *testing.T) {
	for answer, want := range map[string][]string{
		"": nil,
		`{"resources": [{"name": "adminnetworkpolicies", "kind": "AdminNetworkPolicy"}, {"name":
			"adminnetworkpolicies/status", "kind": "AdminNetworkPolicy"}, {"name": "others", "kind": "Other"}, {"name":
			"baselineadminnetworkpolicies", "kind": "BaselineAdminNetworkPolicy"}]}`: {"AdminNetworkPolicy",
			"BaselineAdminNetworkPolicy"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/policy.networking.k8s.io/v1alpha1" || answer == "" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(w, answer)
		}))
		clients, err := New(config.Kubernetes{APIServer: server.URL}, "test")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := clients.OldPolicyKinds(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("kinds %v, error %v; want %v", got, err, want)
		}
		server.Close()
		if _, err := clients.OldPolicyKinds(t.Context()); err == nil {
			t.Error("no error from a server that is gone")
		}
	}
}
