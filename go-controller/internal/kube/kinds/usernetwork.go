package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		ProtectedBy: []Daemon{Master},
	}, decodeUserNetwork)
}

// userNetworkOf is what the metadata and the status of an object of both kinds say.
func userNetworkOf(u *unstructured.Unstructured) *cluster.UserNetwork {
	out := &cluster.UserNetwork{Name: NameOf(u), UID: string(u.GetUID()), Created: createdAt(u),
		Deleting: u.GetDeletionTimestamp() != nil,
		Observed: observedOf(u, cluster.TypeNetworkCreated, cluster.TypeNetworkAllocated,
			cluster.TypeNetworkMapped)}
	if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
		out.Protected = slices.Contains(finalizers, cluster.Finalizer)
		if text, err := json.Marshal(finalizers); err == nil {
			out.Finalizers = string(text)
		}
	}
	return out
}

func decodeUserNetwork(u *unstructured.Unstructured) (*cluster.UserNetwork, []cluster.Problem) {
	out := userNetworkOf(u)
	spec, err := json.Marshal(u.Object["spec"])
	if err == nil {
		out.Network, err = attachment.UserDefined(out.Name, spec)
	}
	return out, invalidNetwork(out, u, err)
}

// invalidNetwork records why a network can't be used, if it can't, and reports it.
func invalidNetwork(n *cluster.UserNetwork, u *unstructured.Unstructured, err error) []cluster.Problem {
	if err == nil {
		return nil
	}
	n.Invalid = fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))
	f := findingsOf(n.Ref().Kind, u)
	f.bad(reasonDefinition, "%s: pods that ask for the network do not start", n.Invalid)
	return f.problems
}

// ClusterUserNetwork is the row of ClusterUserDefinedNetworks.
func ClusterUserNetwork() Kind {
	version := schema.GroupVersion{Group: "k8s.ovn.org", Version: "v1"}
	return dynamicRow(Kind{
		Kind: cluster.KindClusterUserNetwork, Resource: version.WithResource("clusteruserdefinednetworks"),
		ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master}, JudgedBy: []Daemon{Master},
		ProtectedBy: []Daemon{Master},
	}, decodeClusterUserNetwork)
}

func decodeClusterUserNetwork(u *unstructured.Unstructured) (*cluster.UserNetwork, []cluster.Problem) {
	out := userNetworkOf(u)
	spec, err := json.Marshal(u.Object["spec"])
	if err == nil {
		var namespaces *metav1.LabelSelector
		out.Network, namespaces, err = attachment.ClusterUserDefined(out.Name.Name, spec)
		if namespaces != nil {
			selects, wrong := selector(namespaces)
			if wrong == nil {
				out.Selects = &selects
			} else if err == nil {
				out.Network, err = nil, fmt.Errorf("spec.namespaceSelector: %w", wrong)
			}
		}
	}
	return out, invalidNetwork(out, u, err)
}
