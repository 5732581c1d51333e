package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// ClusterNetworkPolicy is the row of ClusterNetworkPolicies, which an API server has once its administrator installs
// the kind.
func ClusterNetworkPolicy(limits config.Policies) Kind {
	version := schema.GroupVersion(v1alpha2.GroupVersion)
	return dynamicRow(Kind{
		Kind: cluster.KindClusterNetworkPolicy, Resource: version.WithResource("clusternetworkpolicies"),
		ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master}, JudgedBy: []Daemon{Master},
		Limited: true,
	}, func(u *unstructured.Unstructured) (*cluster.TieredPolicy, []cluster.Problem) {
		object := readClusterPolicy(u)
		out, problems := decodeClusterPolicy(object, limitsOf(limits))
		out.Observed = object.observed
		out.Problems = slices.DeleteFunc(slices.Clone(problems), func(p cluster.Problem) bool {
			return p.Reason == reasonLogging // the rules are in effect all the same
		})
		return out, problems
	})
}

// clusterPolicyObject is an object, with what this version does not understand.
type clusterPolicyObject struct {
	v1alpha2.ClusterNetworkPolicy
	observed cluster.Observed
	unknown  []string // paths of fields, such as spec.ingress[0].schedule
	broken   error    // why the object can't be read; then it has no spec
}

// mostUnknown is after how many unknown fields the decoder stops counting.
const mostUnknown = 100

func readClusterPolicy(u *unstructured.Unstructured) *clusterPolicyObject {
	out := &clusterPolicyObject{}
	unknown, err := readStrictly(u, &out.ClusterNetworkPolicy)
	if err != nil {
		*out = clusterPolicyObject{broken: err}
		out.SetName(u.GetName())
		out.SetUID(u.GetUID())
	}
	out.observed, out.unknown = observedOf(u, cluster.TypeAccepted), unknown
	return out
}

// readStrictly reads an object into a value of Go. unknown lists the paths of fields that the value does not have.
func readStrictly(u *unstructured.Unstructured, into any) (unknown []string, err error) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	errs, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		return nil, err
	}
	if len(errs) >= mostUnknown { // of others nothing is known
		unknown = append(unknown, fmt.Sprintf("spec.* (%d fields or more)", mostUnknown))
	}
	for _, e := range errs {
		if _, path, ok := strings.Cut(e.Error(), `unknown field "`); ok {
			unknown = append(unknown, strings.TrimSuffix(path, `"`))
		}
	}
	return unknown, nil
}
