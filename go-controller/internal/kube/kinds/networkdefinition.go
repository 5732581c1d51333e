package kinds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/attachment"
)

// Reasons of Problems with definitions of networks, and with pods that ask for them.
const (
	reasonDefinition = "InvalidNetwork"
	reasonRequest    = "InvalidNetworkRequest"
)

// NetworkDefinition is the row of NetworkAttachmentDefinitions, which an API server has once its administrator installs
// the kind.
func NetworkDefinition() Kind {
	version := schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}
	return dynamicRow(Kind{
		Kind: cluster.KindNetworkDefinition, Resource: version.WithResource("network-attachment-definitions"),
		Namespaced: true, ValidName: subdomain, Optional: true, WatchedBy: []Daemon{Master},
	}, decodeDefinition)
}

func decodeDefinition(u *unstructured.Unstructured) (*cluster.NetworkDefinition, []cluster.Problem) {
	out := &cluster.NetworkDefinition{Name: NameOf(u), UID: string(u.GetUID()), Created: createdAt(u)}
	f := findingsOf(cluster.KindNetworkDefinition, u)
	conf, _, err := unstructured.NestedString(u.Object, "spec", "config")
	if err == nil {
		out.Network, err = attachment.Definition(out.Name, conf)
	}
	if err != nil {
		out.Invalid = fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))
		f.bad(reasonDefinition, "%s: pods that ask for the network do not start", out.Invalid)
	}
	out.Foreign = err == nil && out.Network == nil
	return out, f.problems
}

// decodeRequests reads which further interfaces a pod asks for.
func decodeRequests(f *findings, p *cluster.Pod, value string) {
	var err error
	if p.Attachments, err = attachment.Requests(p.Name.Namespace, value); err != nil {
		p.Refused = fmt.Sprintf("%.300s", strings.ToValidUTF8(err.Error(), "?"))
		f.bad(reasonRequest, "annotation %s: %v: a pod that has not started waits until it is right",
			annotation.NetworkRequests, err)
	}
}
