package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics/server"
)

// credentialID is where the API server says which token it was. Source: Kubernetes API, TokenReview, user.extra.
const credentialID = "authentication.kubernetes.io/credential-id"

// Reviewer knows the ServiceAccounts of one namespace.
type Reviewer struct {
	Kube      kubernetes.Interface
	Namespace string
}

// Review is for server.Server. A token without this audience is refused, also one for the API server itself: whoever
// had it would be able to do more than ask this server.
func (r Reviewer) Review(ctx context.Context, token, audience string) (c server.Caller, err error) {
	review, err := r.Kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return c, fmt.Errorf("creating a TokenReview: %w", err)
	}
	s := review.Status
	if !s.Authenticated || !slices.Contains(s.Audiences, audience) {
		return c, fmt.Errorf("%w: it is not one of audience %s that the API server has issued, or it has expired",
			server.ErrRefused, audience)
	}
	account, ok := strings.CutPrefix(s.User.Username, "system:serviceaccount:"+r.Namespace+":")
	if !ok {
		return c, fmt.Errorf("%w: it is that of %s, want one of a ServiceAccount in namespace %s", server.ErrRefused,
			s.User.Username, r.Namespace)
	}
	return server.Caller{Account: account, Credential: strings.Join(s.User.Extra[credentialID], " ")}, nil
}
