package review

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/go-controller/internal/scrape"
)

// MetricsPath is what the owner of a token must be allowed to get, as with Kubernetes' own components.
const MetricsPath = "/metrics"

// Metrics is for scrape.Server: whether the owner of a token may read metrics.
func Metrics(ctx context.Context, kube kubernetes.Interface, token string) error {
	who, err := kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a TokenReview: %w", err)
	}
	user := who.Status.User
	if !who.Status.Authenticated {
		return scrape.ErrRefused
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	may, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: MetricsPath, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a SubjectAccessReview: %w", err)
	}
	if !may.Status.Allowed {
		return fmt.Errorf("%w: user %s lacks the right to get %s (nonResourceURLs)", scrape.ErrForbidden, user.Username,
			MetricsPath)
	}
	return nil
}
