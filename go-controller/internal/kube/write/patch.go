package kubeio

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/assign"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Patch makes one attempt to write annotations of a pod or node. A pod's go
// through the status subresource, which admission webhooks for pods do not hold
// up.
func (c *Clients) Patch(ctx context.Context, p assign.Patch) error {
	body, err := patchBody(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	r := c.patches.Patch(types.MergePatchType).Body(body)
	if p.Ref.Kind == cluster.KindPod {
		r = r.Namespace(p.Ref.Name.Namespace).Resource("pods").SubResource("status")
	} else {
		r = r.Resource("nodes")
	}
	return r.Name(p.Ref.Name.Name).Do(ctx).Error()
}

// Nodes lists the nodes once, with what is wrong with their annotations.
func (c *Clients) Nodes(ctx context.Context) ([]*cluster.Node, []cluster.Problem, error) {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing nodes from the API server %s: %w", c.Server, err)
	}
	var nodes []*cluster.Node
	var problems []cluster.Problem
	for i := range list.Items {
		n, bad := decodeNode(&list.Items[i])
		nodes, problems = append(nodes, n), append(problems, bad...)
	}
	return nodes, problems, nil
}

// ServiceRanges lists the ranges of ClusterIPs that the API has ServiceCIDRs for,
// once; none when it has no such objects, or they are not ours to see.
func (c *Clients) ServiceRanges(ctx context.Context) (ranges []netip.Prefix, problems []cluster.Problem, err error) {
	list, err := c.Kube.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	switch {
	case withheld(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("listing ServiceCIDRs from the API server %s: %w", c.Server, err)
	}
	for i := range list.Items {
		o, bad := decodeServiceCIDR(&list.Items[i])
		ranges, problems = append(ranges, o.CIDRs...), append(problems, bad...)
	}
	return ranges, problems, nil
}

// patchBody is a merge patch (RFC 7386). The UID in it makes the API server
// refuse it for another object of the same name.
func patchBody(p assign.Patch) ([]byte, error) {
	var b mergePatch
	b.Metadata.UID = p.UID
	b.Metadata.Annotations = make(map[string]*string, len(p.Annotations)+len(p.Remove))
	for k, v := range p.Annotations {
		b.Metadata.Annotations[k] = &v
	}
	for _, k := range p.Remove {
		b.Metadata.Annotations[k] = nil
	}
	return json.Marshal(b)
}

// mergePatch is the wire form of a patch; null removes an annotation.
type mergePatch struct {
	Metadata struct {
		Annotations map[string]*string `json:"annotations"`
		UID         string             `json:"uid,omitempty"`
	} `json:"metadata"`
}
