package kinds

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/attachment"
)

// UserNetwork is the row of UserDefinedNetworks, which an API server has once its administrator installs the kind.
func UserNetwork() Kind {
	version := schema.GroupVersion{Group: "k8s.ovn.org", Version: "v1"}
	return dynamicRow(Kind{
		Kind: cluster.KindUserNetwork, Resource: version.WithResource("userdefinednetworks"), Namespaced: true,
		ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master}, JudgedBy: []Daemon{Master},
	}, decodeUserNetwork)
}

func decodeUserNetwork(u *unstructured.Unstructured) (*cluster.UserNetwork, []cluster.Problem) {
	out := &cluster.UserNetwork{Name: NameOf(u), UID: string(u.GetUID()),
		Observed: observedOf(u, cluster.TypeNetworkCreated)}
	f := findingsOf(cluster.KindUserNetwork, u)
	spec, err := json.Marshal(u.Object["spec"])
	if err == nil {
		out.Network, err = attachment.UserDefined(out.Name, spec)
	}
	if err != nil {
		out.Invalid = fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))
		f.bad(reasonDefinition, "%s: pods that ask for the network do not start", out.Invalid)
	}
	return out, f.problems
}
