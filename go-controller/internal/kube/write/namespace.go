package write

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// Namespace writes an annotation of a Namespace on behalf of a user. The API server refuses it when the Namespace has
// changed since it had this UID and resourceVersion.
func Namespace(ctx context.Context, c *client.Clients, name, uid, version, key, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "resourceVersion": version, "annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("building the patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	_, err = c.Kube.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}
