package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// Every command that judges policies has the limits that the master has published. It reads them from the API server,
// or from the ConfigMap among manifests. A flag counts more.
func TestPolicyLimitsOfTheMaster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	const file = "testdata/policy-check.in.yaml"
	const settings = `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"max-policy-selectors": "1",
		"cluster-subnets": "10.128.0.0/14/23"}, "metadata": {"name": "northbound-settings", "namespace": "kube-system"}}`
	const policy = `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "two",
		"namespace": "shop"}, "spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}, {"podSelector":
		{"matchLabels": {"a": "b"}}}]}]}}`
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.json": policy, "settings.json": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects := listsOf(t, file)
	objects["/api/v1/namespaces/kube-system/configmaps/northbound-settings"] = settings
	objects["/apis/networking.k8s.io/v1/networkpolicies"] = `{"kind": "NetworkPolicyList", "apiVersion":
		"networking.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": [` + policy + `]}`
	database := []string{"--log-level=error", "--nb-address", translatedFrom(t, file, testkit.NBSchemas()["25.03"])}
	live := append([]string{"--k8s-apiserver", objects.serve(t)}, database...)
	manifests := []string{"-f", file, "-f", dir}
	pods := []string{"shop/web-0", "shop/web-0:80"}
	for _, command := range []struct {
		flags, args []string
		alike       bool // it takes manifests, too
	}{
		{[]string{"plan"}, nil, false},
		{[]string{"policy", "check"}, pods, true},
		{[]string{"policy", "matrix"}, nil, true},
		{[]string{"explain", "np"}, []string{"shop/two"}, true},
		{[]string{"policy", "diff", "--delete", "np/shop/two"}, nil, false},
	} {
		wantLimit(t, slices.Concat(command.flags, live, command.args))
		if command.alike {
			wantLimit(t, slices.Concat(command.flags, manifests, command.args))
		}
	}
	wantLimit(t, slices.Concat([]string{"plan"}, database, manifests))
	wantLimit(t, append([]string{"translate"}, manifests...))
	wantLimit(t, []string{"policy", "diff", "--from", file, "--from", filepath.Join(dir, "settings.json"),
		"-f", file, "-f", filepath.Join(dir, "policy.json")})
	const own = "--max-policy-selectors=1" // the master goes by its flags
	wantLimit(t, slices.Concat([]string{"master", "--dry-run", own}, live))
}

// wantLimit runs a command about a policy of two selectors where one is allowed, and again with a flag that allows
// both, or any number.
func wantLimit(t *testing.T, args []string) {
	t.Helper()
	const beyond = "with it the policy has more than 1 selectors"
	if got := ovnkube(t.Context(), nil, args...); !strings.Contains(got.String(), beyond) {
		t.Errorf("%v: want %q:\n%s", args, beyond, got)
	}
	for _, limit := range []int{0, 2} {
		flag := fmt.Sprintf("--max-policy-selectors=%d", limit)
		at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--") || a == "-f" })
		raised := slices.Insert(slices.Clone(args), at, flag)
		raised = slices.DeleteFunc(raised, func(a string) bool { return a == "--max-policy-selectors=1" })
		if got := ovnkube(t.Context(), nil, raised...); strings.Contains(got.String(), beyond) || got.exit == 1 {
			t.Errorf("%v: want no limit reached:\n%s", raised, got)
		}
	}
}

// A limit is not negative.
func TestPolicyLimitNegative(t *testing.T) {
	got := ovnkube(t.Context(), nil, "translate", "-f", "testdata/policy-check.in.yaml", "--max-policy-ports=-1")
	const want = "--max-policy-ports -1: want a number such as 1024, or 0 for no limit"
	if got.exit != 1 || !strings.Contains(got.stderr, want) {
		t.Errorf("want exit code 1 and %q:\n%s", want, got)
	}
}
