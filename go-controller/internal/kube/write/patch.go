package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// patchTimeout limits one attempt to patch.
const patchTimeout = 15 * time.Second

// Patch makes one attempt to write annotations of an object, as the row of its kind says.
func Patch(ctx context.Context, c *client.Clients, rows []kinds.Kind, p allocate.Patch) error {
	k, err := annotated(rows, p)
	if err != nil {
		return err
	}
	body, err := patchBody(p)
	if err != nil {
		return fmt.Errorf("building the patch of %s: %w", p.Ref, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	r := c.Patches.Patch(types.MergePatchType).Body(body).Resource(k.Resource.Resource).Name(p.Ref.Name.Name)
	if k.Resource.Group != "" {
		r = r.AbsPath("/apis", k.Resource.Group, k.Resource.Version)
	} else {
		r = r.AbsPath("/api", k.Resource.Version)
	}
	if k.Namespaced {
		r = r.Namespace(p.Ref.Name.Namespace)
	}
	if k.Subresource != "" {
		r = r.SubResource(k.Subresource)
	}
	return r.Do(ctx).Error()
}

// annotated is the row of a patch's kind, or why there is nothing to patch.
func annotated(rows []kinds.Kind, p allocate.Patch) (kinds.Kind, error) {
	k, ok := kinds.Find(rows, p.Ref.Kind)
	switch {
	case !ok:
		return k, fmt.Errorf("patching annotations of %s: kind %q has no row, want one of package kinds", p.Ref, p.Ref.Kind)
	case len(k.AnnotatedBy) == 0:
		return k, fmt.Errorf("patching annotations of %s: AnnotatedBy of kind %q is empty, want the daemon that annotates it",
			p.Ref, p.Ref.Kind)
	}
	return k, nil
}

// patchBody is a merge patch (RFC 7386). The UID in it makes the API server refuse it for another object of the same
// name.
func patchBody(p allocate.Patch) ([]byte, error) {
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
