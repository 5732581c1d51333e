package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

func ipamClaim(spec, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kinds.IPAMClaim().Resource.GroupVersion().WithKind("IPAMClaim"))
	u.SetNamespace("shop")
	u.SetName("vm")
	u.SetUID("uid")
	if status != nil {
		u.Object["status"] = status
	}
	return u
}

func TestDecodeIPAMClaim(t *testing.T) {
	spec := map[string]any{"network": "blue", "interface": "net1", "ipRequests": []any{"10.99.0.7/24"}}
	o, problems := kinds.IPAMClaim().Decode(ipamClaim(spec, map[string]any{"ips": []any{"fd99::8/64", "10.99.0.8/24"},
		"ownerPod": map[string]any{"name": "a"}}))
	c, ok := o.(*cluster.IPAMClaim)
	if !ok || len(problems) > 0 || c.Network != "blue" || c.Pod != "a" || c.UID != "uid" ||
		fmt.Sprint(c.Asked, c.IPs) != "[10.99.0.7/24] [10.99.0.8/24 fd99::8/64]" ||
		c.Status != `{"ips":["fd99::8/64","10.99.0.8/24"],"ownerPod":{"name":"a"}}` {
		t.Errorf("%+v, %v", o, problems)
	}
	older, problems := kinds.IPAMClaim().Decode(ipamClaim(spec, map[string]any{"ips": []any{}, "ownerPod": "a"}))
	if len(problems) > 0 || older.Equal(o) {
		t.Errorf("%+v, %v", older, problems)
	}
}

func TestDecodeWrongIPAMClaim(t *testing.T) {
	for want, u := range map[string]*unstructured.Unstructured{
		"spec.network: none":       ipamClaim(map[string]any{}, nil),
		"reading the claim":        ipamClaim(map[string]any{"network": 1}, nil),
		`status.ips: "x", want an`: ipamClaim(map[string]any{"network": "b"}, map[string]any{"ips": []any{"x"}}),
		"are of one address family": ipamClaim(map[string]any{"network": "b",
			"ipRequests": []any{"1.1.1.1/8", "1.1.1.2/8"}}, nil),
		`spec.ipRequests: "1.1.1.1",`: ipamClaim(map[string]any{"network": "b", "ipRequests": []any{"1.1.1.1"}}, nil),
	} {
		o, problems := kinds.IPAMClaim().Decode(u)
		c, ok := o.(*cluster.IPAMClaim)
		if !ok || !strings.Contains(c.Invalid, want) || len(problems) != 1 || problems[0].Reason != "InvalidIPAMClaim" {
			t.Errorf("%+v, %v: want %q", o, problems, want)
		}
	}
}
