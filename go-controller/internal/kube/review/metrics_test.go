package review

import (
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/scrape"
)

// Whoever the API server knows and lets get /metrics may read them.
func TestMetrics(t *testing.T) {
	away := errors.New("the API server is away")
	for name, c := range map[string]struct {
		known, allowed bool
		fails          string
		want           error
	}{
		"allowed":                  {true, true, "", nil},
		"not allowed":              {true, false, "", scrape.ErrForbidden},
		"unknown":                  {false, true, "", scrape.ErrRefused},
		"no answer about the user": {true, true, "tokenreviews", away},
		"no answer about rights":   {true, true, "subjectaccessreviews", away},
	} {
		kube := fake.NewClientset()
		kube.PrependReactor("create", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
			if a.GetResource().Resource == c.fails {
				return true, nil, away
			}
			switch asked := a.(k8stesting.CreateAction).GetObject().(type) {
			case *authenticationv1.TokenReview:
				user := authenticationv1.UserInfo{Username: "prometheus", Groups: []string{"readers"},
					Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
				return true, &authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{
					Authenticated: c.known && asked.Spec.Token == "t", User: user}}, nil
			case *authorizationv1.SubjectAccessReview:
				s := asked.Spec
				allowed := c.allowed && s.User == "prometheus" && s.Groups[0] == "readers" && s.Extra["k"][0] == "v" &&
					s.NonResourceAttributes.Path == "/metrics" && s.NonResourceAttributes.Verb == "get"
				return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{
					Allowed: allowed}}, nil
			}
			return false, nil, nil
		})
		if err := Metrics(t.Context(), kube, "t"); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
