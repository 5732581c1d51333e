package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// patchTimeout limits one attempt to patch.
const patchTimeout = 15 * time.Second

// Patch makes one attempt to write annotations of an object, a condition or finalizers, as the row of its kind says, or
// to remove taints of a Node.
func Patch(ctx context.Context, c *client.Clients, rows []kinds.Kind, p allocate.Patch) error {
	k, err := patched(rows, p)
	if err != nil {
		return err
	}
	build, patchType := patchBody, types.JSONPatchType
	switch {
	case p.Finalizers != nil:
		build, k.Subresource = finalizersBody, ""
	case len(p.Taints) > 0:
		build = taintsBody
	case p.Status != nil && k.SharedConditions:
		build, patchType, k.Subresource = sharedStatusBody, types.StrategicMergePatchType, "status"
	case p.Claim != nil:
		build, k.Subresource = claimBody, "status"
	case p.Status != nil:
		build, k.Subresource = statusBody, "status"
	}
	body, err := build(p)
	if err != nil {
		return fmt.Errorf("building the patch of %s: %w", p.Ref, err)
	}
	if body == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	r := c.Patches.Patch(patchType).Body(body).Resource(k.Resource.Resource).Name(p.Ref.Name.Name)
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

// patched is the row of a patch's kind, or why there is nothing to patch.
func patched(rows []kinds.Kind, p allocate.Patch) (kinds.Kind, error) {
	k, ok := kinds.Find(rows, p.Ref.Kind)
	switch {
	case !ok:
		return k, fmt.Errorf("patching annotations of %s: kind %q has no row, want one of package kinds", p.Ref, p.Ref.Kind)
	case p.Finalizers != nil && len(k.ProtectedBy) == 0:
		return k, fmt.Errorf("patching finalizers of %s: ProtectedBy of kind %q is empty, want the daemon that adds them",
			p.Ref, p.Ref.Kind)
	case p.Finalizers != nil:
	case (p.Status != nil || p.Claim != nil) && len(k.JudgedBy) == 0:
		return k, fmt.Errorf("patching the status of %s: JudgedBy of kind %q is empty, want the daemon that judges it",
			p.Ref, p.Ref.Kind)
	case p.Status == nil && p.Claim == nil && len(k.AnnotatedBy) == 0:
		return k, fmt.Errorf("patching annotations of %s: AnnotatedBy of kind %q is empty, want the daemon that annotates it",
			p.Ref, p.Ref.Kind)
	}
	return k, nil
}

// operation is one operation of a JSON patch (RFC 6902). With Value nil it tests that there is nothing at Path. The
// null is written: API servers before Kubernetes 1.35 panic at a test that has no value (json-patch before 4.13).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// annotationsPath is where annotations are.
const annotationsPath = "/metadata/annotations"

// keyPath is where the annotation of a key is.
func keyPath(key string) string {
	return annotationsPath + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// patchBody is a JSON patch (RFC 6902). The API server refuses it for another object of the same name, and when one of
// the annotations is not what the master has found. It is nil when there is nothing to do.
func patchBody(p allocate.Patch) ([]byte, error) {
	var tests, changes []operation
	if p.UID != "" {
		tests = append(tests, operation{"test", "/metadata/uid", p.UID})
	}
	change := func(op, path string, was, now any) {
		tests, changes = append(tests, operation{"test", path, was}), append(changes, operation{op, path, now})
	}
	value := func(key string) any {
		if v, ok := p.Found.Values[key]; ok {
			return v
		}
		return nil
	}
	if p.Found.Bare {
		if len(p.Annotations) > 0 {
			change("add", annotationsPath, nil, p.Annotations)
		}
	} else {
		for _, k := range slices.Sorted(maps.Keys(p.Annotations)) {
			change("add", keyPath(k), value(k), p.Annotations[k])
		}
		for _, k := range p.Remove {
			if was := value(k); was != nil {
				change("remove", keyPath(k), was, nil)
			}
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return json.Marshal(append(tests, changes...))
}

// overtaken tells whether an object is not as the master has found it: the API server could not apply the patch. It
// gives no more of a reason than its status. A validation names the kind, and a webhook itself. A merge patch for
// another object of the same name is a conflict.
func overtaken(rows []kinds.Kind, p allocate.Patch, err error) bool {
	k, _ := kinds.Find(rows, p.Ref.Kind)
	if k.SharedConditions && p.Status != nil && (apierrors.IsConflict(err) || otherUID(err)) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return (d == nil || d.Kind == "" && len(d.Causes) == 0) &&
		!strings.HasPrefix(status.Status().Message, "admission webhook")
}

// otherUID tells whether a merge patch has named the UID of another object of the name, which can't be changed.
func otherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}
