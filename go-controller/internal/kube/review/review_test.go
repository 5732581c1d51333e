package review

import (
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics/server"
)

// Only a token of this audience, of a ServiceAccount in this namespace, is somebody's.
func TestReview(t *testing.T) {
	const audience = "northbound.io/diagnostics/node/n1"
	viewer := "system:serviceaccount:ovn-kubernetes:northbound-viewer"
	status := func(ok bool, user string, audiences ...string) authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Authenticated: ok, Audiences: audiences, User: authenticationv1.UserInfo{
			Username: user, Extra: map[string]authenticationv1.ExtraValue{credentialID: {"JTI=7"}}}}
	}
	unavailable := errors.New("the API server is away")
	for name, c := range map[string]struct {
		status authenticationv1.TokenReviewStatus
		fails  error
		want   server.Caller
		err    error
	}{
		"good": {status(true, viewer, audience), nil, server.Caller{Account: "northbound-viewer",
			Credential: "JTI=7"}, nil},
		"not authenticated": {status(false, "", audience), nil, server.Caller{}, server.ErrRefused},
		"no audience":       {status(true, viewer), nil, server.Caller{}, server.ErrRefused},
		"another audience": {status(true, viewer, "https://kubernetes.default.svc"), nil, server.Caller{},
			server.ErrRefused},
		"a user": {status(true, "admin", audience), nil, server.Caller{}, server.ErrRefused},
		"another namespace": {status(true, "system:serviceaccount:shop:northbound-viewer", audience), nil,
			server.Caller{}, server.ErrRefused},
		"the server is absent": {status(true, viewer, audience), unavailable, server.Caller{}, unavailable},
	} {
		kube := fake.NewClientset()
		kube.PrependReactor("create", "tokenreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
			asked := a.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
			if asked.Spec.Token != "t" || len(asked.Spec.Audiences) != 1 || asked.Spec.Audiences[0] != audience {
				t.Errorf("%s: asked %+v", name, asked.Spec)
			}
			return true, &authenticationv1.TokenReview{Status: c.status}, c.fails
		})
		got, err := Reviewer{Kube: kube, Namespace: "ovn-kubernetes"}.Review(t.Context(), "t", audience)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}
