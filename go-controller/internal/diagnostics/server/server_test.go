package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// testServer has tools of the system, and knows two tokens.
func testServer(t *testing.T) (*Server, *httptest.Server) {
	s := &Server{Place: diagnostics.Node, Node: "n1", Log: slog.New(slog.DiscardHandler),
		Review: func(_ context.Context, token, audience string) (Caller, error) {
			_, signature, _ := strings.Cut(token, ".")
			_, signature, _ = strings.Cut(signature, ".")
			switch signature {
			case "viewer", "capturer":
				return Caller{Account: "northbound-" + signature, Credential: "JTI=1"}, nil
			case "unavailable":
				return Caller{}, errors.New("the API server does not answer")
			}
			return Caller{}, ErrRefused
		},
		Tools: []diagnostics.Tool{
			{Name: "echo", Account: diagnostics.Viewer, Program: []string{"sh", "-c",
				`echo "$NORTHBOUND_LOG_LEVEL $*"; echo oh >&2; exit 3`, "sh"}},
			{Name: "sleep", Account: diagnostics.Viewer, Program: []string{"sh", "-c", `echo $$ > "$1"; exec sleep 600`, "sh"}},
			{Name: "absent", Account: diagnostics.Viewer, Program: []string{"/no/such/program"}},
			{Name: "capture", Account: diagnostics.Capturer, Program: []string{"true"}},
		}}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return s, h
}

// tokenOf is a token for an audience; whose it is stands in the place of the signature.
func tokenOf(audience, whose string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["`+audience+`"]}`)) + "." + whose
}

// nonceOf asks a server for its nonce.
func nonceOf(t *testing.T, h *httptest.Server) string {
	t.Helper()
	answer, err := h.Client().Get(h.URL + diagnostics.IdentityPath)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var identity diagnostics.Identity
	if err := json.NewDecoder(answer.Body).Decode(&identity); err != nil || identity.Nonce == "" {
		t.Fatalf("identity %+v, %v", identity, err)
	}
	return identity.Nonce
}

// ask sends a request with a token of somebody for this server; body "" has no arguments.
func ask(ctx context.Context, t *testing.T, h *httptest.Server, tool, token, body string) *http.Response {
	t.Helper()
	if body == "" {
		body = "{}"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+diagnostics.Path(tool), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.Contains(token, "."):
		r.Header.Set("Authorization", "Bearer "+token)
	case token != "":
		audience := "northbound.io/diagnostics/node/n1/" + nonceOf(t, h)
		r.Header.Set("Authorization", "Bearer "+tokenOf(audience, token))
	}
	answer, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// A tool's output, messages and exit code come back.
func TestRun(t *testing.T) {
	_, h := testServer(t)
	for tool, want := range map[string]struct {
		exit           int
		stdout, stderr string
	}{
		"echo":   {3, "warn a b\n", "oh\n"},
		"absent": {-1, "", "running \"/no/such/program\": fork/exec /no/such/program: no such file or directory\n"},
	} {
		var stdout, stderr bytes.Buffer
		answer := ask(t.Context(), t, h, tool, "viewer", `{"arguments":["a","b"]}`)
		exit, err := diagnostics.Copy(answer.Body, &stdout, &stderr)
		if err != nil || exit != want.exit || stdout.String() != want.stdout || stderr.String() != want.stderr {
			t.Errorf("%s: exit %d, %v, %q, %q", tool, exit, err, &stdout, &stderr)
		}
	}
}

// Who may not ask hears why, and nothing runs.
func TestRefusals(t *testing.T) {
	_, h := testServer(t)
	for _, c := range []struct {
		tool, token, body string
		code              int
		want              string
	}{
		{"echo", "", "", 401, "no token"},
		{"echo", "stolen", "", 401, "refused"},
		{"echo", "no.token", "", 401, "refused"},
		{"echo", "e30.e30.viewer", "", 401, "refused"},
		{"echo", tokenOf("northbound.io/diagnostics/node/n1/of-another-start", "viewer"), "", 401, "refused"},
		{"echo", tokenOf("https://kubernetes.default.svc", "viewer"), "", 401, "refused"},
		{"echo", "capturer", "", 403, "want a token of northbound-viewer"},
		{"capture", "viewer", "", 403, "want a token of northbound-capturer"},
		{"echo", "unavailable", "", 503, "the API server does not answer"},
		{"nothing", "viewer", "", 404, "not found"},
		{"echo", "viewer", "{", 400, "reading the request"},
		{"echo", "viewer", `{"arguments":["--rcfile=x"]}`, 400, `option "--rcfile"`},
		{"echo", "viewer", `{"arguments":["` + strings.Repeat("x", maxRequest) + `"]}`, 400, "too large"},
	} {
		answer := ask(t.Context(), t, h, c.tool, c.token, c.body)
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.code || !strings.Contains(string(text), c.want) {
			t.Errorf("%s with token %q: %d %s, %v; want %d with %q", c.tool, c.token, answer.StatusCode, text, err, c.code,
				c.want)
		}
	}
	answer, err := h.Client().Get(h.URL + diagnostics.Path("echo"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s, want 405", answer.Status)
	}
}

// The API server is asked seldom, whoever sends requests.
func TestReviewsAreLimited(t *testing.T) {
	s, h := testServer(t)
	asked := 0
	s.Review = func(context.Context, string, string) (Caller, error) { asked++; return Caller{}, ErrRefused }
	for range 100 {
		ask(t.Context(), t, h, "echo", "e30.e30.guess", "")
	}
	if asked > 0 {
		t.Errorf("the API server was asked about %d tokens that are not for this server", asked)
	}
	limited := 0
	for range 100 {
		if ask(t.Context(), t, h, "echo", "guess", "").StatusCode == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 || asked+limited != 100 {
		t.Errorf("100 requests: %d were limited, and the API server was asked %d times", limited, asked)
	}
}

// A tool ends with its caller's connection, and frees its place. No more than maxRunning run at the same time.
func TestCallerGone(t *testing.T) {
	s, h := testServer(t)
	s.reviews.SetBurst(1000)
	s.reviews.SetLimit(1000)
	ctx, leave := context.WithCancel(t.Context())
	token := tokenOf("northbound.io/diagnostics/node/n1/"+nonceOf(t, h), "viewer")
	var pids []string
	for i := range maxRunning {
		pids = append(pids, filepath.Join(t.TempDir(), "pid"))
		body, err := json.Marshal(diagnostics.Request{Arguments: pids[i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		go func() { // the answer's headers come with the first output, which sleep has none of
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+diagnostics.Path("sleep"), bytes.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			if answer, err := h.Client().Do(r); err == nil {
				answer.Body.Close()
			}
		}()
	}
	var running []string
	for _, file := range pids {
		testkit.Eventually(t, "a tool runs", func() string {
			pid, err := os.ReadFile(file)
			if err != nil || len(pid) == 0 {
				return "it has not written its pid"
			}
			running = append(running, strings.TrimSpace(string(pid)))
			return ""
		})
	}
	if answer := ask(t.Context(), t, h, "echo", "viewer", ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more tool: %s, want 503", answer.Status)
	}
	if answer := ask(t.Context(), t, h, "capture", "capturer", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("a tool of the other account: %s, want 200", answer.Status)
	}
	leave()
	for _, pid := range running {
		testkit.Eventually(t, "tool "+pid+" has ended", func() string {
			if _, err := os.Stat("/proc/" + pid); err == nil {
				return "it still runs"
			}
			return ""
		})
	}
	testkit.Eventually(t, "a place is free", func() string {
		answer := ask(t.Context(), t, h, "echo", "viewer", "")
		return map[bool]string{false: answer.Status}[answer.StatusCode == http.StatusOK]
	})
}

// Frames that cannot be written end the command.
func TestFramesEnd(t *testing.T) {
	ended := 0
	fails := func() error { return os.ErrDeadlineExceeded }
	f := &frames{w: io.Discard, limit: func() error { return nil }, flush: fails, end: func() { ended++ }}
	if n, err := f.part(true).Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || ended == 0 {
		t.Errorf("%d bytes were written, %v; ended %d times", n, err, ended)
	}
}

// Each start of a server has another nonce.
func TestNonce(t *testing.T) {
	_, a := testServer(t)
	_, b := testServer(t)
	if x, y := nonceOf(t, a), nonceOf(t, b); x == y || len(x) < 20 || nonceOf(t, a) != x {
		t.Errorf("nonces %q and %q", x, y)
	}
}

// The server ends with its context.
func TestServe(t *testing.T) {
	s, h := testServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.Listener.Close()
	l := httptest.NewUnstartedServer(nil).Listener
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := once.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("/healthz: %v, %v", answer, err)
	}
	answer.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
