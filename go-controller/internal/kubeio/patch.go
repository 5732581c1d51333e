package kubeio

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	if p.Ref.Kind == cluster.KindPod {
		pods := c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(p.Ref.Name.Namespace)
		_, err = pods.Patch(ctx, p.Ref.Name.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	}
	nodes := c.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	_, err = nodes.Patch(ctx, p.Ref.Name.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
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

// patchBody is a merge patch (RFC 7386). The UID in it makes the API server
// refuse it for another object of the same name.
func patchBody(p assign.Patch) ([]byte, error) {
	annotations := map[string]any{}
	for k, v := range p.Annotations {
		annotations[k] = v
	}
	for _, k := range p.Remove {
		annotations[k] = nil
	}
	meta := map[string]any{"annotations": annotations}
	if p.UID != "" {
		meta["uid"] = p.UID
	}
	return json.Marshal(map[string]any{"metadata": meta})
}
