package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// namespaceAPI is an API server with namespaces, which can be patched.
type namespaceAPI struct {
	annotations map[string]map[string]string
	version     int
	refuse      string // the namespace whose patches are refused
}

func (a *namespaceAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	type object = map[string]any
	namespace := func(name string) object {
		return object{"kind": "Namespace", "apiVersion": "v1", "metadata": object{"name": name, "uid": "uid-" + name,
			"resourceVersion": fmt.Sprint(a.version), "annotations": a.annotations[name]}}
	}
	if r.Method == http.MethodGet {
		items := []object{}
		for name := range a.annotations {
			items = append(items, namespace(name))
		}
		_ = json.NewEncoder(w).Encode(object{"kind": "NamespaceList", "apiVersion": "v1", "items": items})
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/")
	var patch struct {
		Metadata struct {
			UID             string            `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = json.NewDecoder(r.Body).Decode(&patch)
	if m := patch.Metadata; name == a.refuse || m.UID != "uid-"+name || m.ResourceVersion != fmt.Sprint(a.version) {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
			"reason": "Conflict", "message": "the object has been modified"})
		return
	}
	for k, v := range patch.Metadata.Annotations {
		if a.annotations[name] == nil {
			a.annotations[name] = map[string]string{}
		}
		a.annotations[name][k] = v
	}
	_ = json.NewEncoder(w).Encode(namespace(name))
}

// Tenants are listed and changed through the API server.
func TestTenantCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	api := &namespaceAPI{annotations: map[string]map[string]string{"shop": nil, "stock": nil, "kube-system": nil,
		"typo": {"k8s.ovn.org/tenant": "Shop"}, "old": {"pod.network.openshift.io/multitenant.change-network": "global"}}}
	server := httptest.NewServer(api)
	defer server.Close()
	for _, step := range []struct {
		args, want, wrong string
	}{
		{"list", "NAMESPACE    TENANT\nkube-system  * (global)\nold          * (global)\nshop         shop\n" +
			"stock        stock\ntypo         typo  annotation k8s.ovn.org/tenant: \"Shop\", want ", ""},
		{"join stock --to shop", "Namespace stock is of tenant shop now (k8s.ovn.org/tenant=shop)\n", ""},
		{"join --to shop stock", "Namespace stock is of tenant shop already\n", ""},
		{"isolate shop", "Namespace shop is of tenant shop-1 now (k8s.ovn.org/tenant=shop-1)\n", ""},
		{"global shop", "Namespace shop is global now (k8s.ovn.org/tenant=*)\n", ""},
		{"isolate typo", "Namespace typo is of tenant typo now (k8s.ovn.org/tenant=typo)\n", ""},
		{"isolate stock old", "Namespace stock is of tenant stock now (k8s.ovn.org/tenant=stock)\n" +
			"Namespace old is of tenant old now ", ""},
		{"list -o json", "[\n  {\n    \"namespace\": \"kube-system\",\n    \"tenant\": \"*\"\n  },\n", ""},
		{"join stock", "", "tenant join: --to is missing"},
		{"join", "", "tenant join: want NAMESPACE..."},
		{"join stock --to gone", "", `there is no Namespace "gone"`},
		{"join stock gone --to old", "", `there is no Namespace "gone"`},
		{"global kube-system refused", "Namespace kube-system is global already\n",
			"writing the tenant of Namespace refused: the object has been modified"},
		{"nosuch", "", `tenant: no command "nosuch": want one of join, isolate, global, list`},
	} {
		if step.args == "global kube-system refused" {
			api.annotations["refused"], api.refuse = nil, "refused"
		}
		args := append([]string{"tenant"}, strings.Fields(step.args)...)
		if args[1] != "nosuch" {
			args = append(args, "--k8s-apiserver", server.URL)
		}
		got := ovnkube(t.Context(), nil, args...)
		if !strings.HasPrefix(got.stdout, step.want) || !strings.Contains(got.stderr, step.wrong) ||
			(got.exit == 0) != (step.wrong == "") {
			t.Errorf("%s:\n%s\nwant\n%s%s", step.args, got, step.want, step.wrong)
		}
	}
	if got := fmt.Sprint(api.annotations["stock"]); got != "map[k8s.ovn.org/tenant:stock]" {
		t.Errorf("annotations of stock: %s", got)
	}
}
