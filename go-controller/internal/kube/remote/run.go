package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// tokenSeconds is how long a token is valid, the shortest time that the API server grants. Only the start of a tool
// needs a valid token.
const tokenSeconds int64 = 600

// Run runs a tool on a server and copies its output while it comes. It returns the tool's exit code; a tool
// that did not end by itself is an error.
func (s *Session) Run(
	ctx context.Context, to Server, t diagnostics.Tool, args []string, stdout, stderr io.Writer,
) (exit int, err error) {
	if _, err := t.Command(args); err != nil { // the server would say the same
		return 0, err
	}
	link := &link{session: s, to: to}
	defer link.close()
	identity, err := link.identity(ctx)
	if err != nil {
		return 0, err
	}
	token, err := s.token(ctx, t.Account, diagnostics.Audience(to.Place, to.Node, identity.Nonce))
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(diagnostics.Request{Arguments: args})
	if err != nil {
		return 0, fmt.Errorf("encoding the request: %w", err)
	}
	answer, err := link.ask(ctx, http.MethodPost, diagnostics.Path(t.Name), token, body)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	exit, err = diagnostics.Copy(answer, stdout, stderr)
	switch {
	case err != nil:
		return 0, fmt.Errorf("node %s: %w", to.Node, err)
	case exit < 0:
		return exit, fmt.Errorf("node %s: %s did not end by itself: it could not be started, or was killed", to.Node, t.Name)
	}
	return exit, nil
}

// token asks the API server for a token of an account for one audience.
func (s *Session) token(ctx context.Context, account, audience string) (string, error) {
	seconds := tokenSeconds
	made, err := s.Kube.CoreV1().ServiceAccounts(s.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a token of ServiceAccount %s/%s: %w", s.Namespace, account, err)
	}
	return made.Status.Token, nil
}
