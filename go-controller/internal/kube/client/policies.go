package client

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OldPolicyKinds lists the kinds of policies that the API server serves and that nobody reads: those that
// ClusterNetworkPolicy has replaced.
func (c *Clients) OldPolicyKinds(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	const path = "/apis/policy.networking.k8s.io/v1alpha1"
	body, err := c.Kube.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var served metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(body, &served)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of the API server: %w", path, err)
	}
	var out []string
	for _, r := range served.APIResources {
		if r.Name == "adminnetworkpolicies" || r.Name == "baselineadminnetworkpolicies" {
			out = append(out, r.Kind)
		}
	}
	return out, nil
}
