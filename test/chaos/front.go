package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// failure is what becomes of lists and watches of a kind: a status of HTTP, or one of these.
type failure int

const (
	whole   failure = 0 // they work
	cut     failure = 1 // the answer breaks off
	stale   failure = 2 // lists are older than the last ones, and watches tell nothing
	cutAt           = 2000
	ownKube         = "front.kubeconfig"
)

// front stands before the API server, passes on everything, and fails the lists and watches of one kind.
type front struct {
	*httptest.Server
	resource string
	behind   *httputil.ReverseProxy

	mu    sync.Mutex
	fails failure
	asked int             // how often, since it fails in this way
	older uint64          // the resource version of stale lists
	taken bool            // a client has taken a stale list: it watches from there on
	until context.Context // the requests for the kind that are under way end with it
	end   context.CancelFunc
}

// newFront is a front of the API server that a kubeconfig names.
func newFront(kubeconfig, resource string) (*front, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("loading the API server's kubeconfig: %w", err)
	}
	to, err := url.Parse(rc.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's URL: %w", err)
	}
	transport, err := rest.TransportFor(rc)
	if err != nil {
		return nil, fmt.Errorf("preparing the way to the API server: %w", err)
	}
	f := &front{resource: resource, behind: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0), // that answers break off is meant
	}}
	f.until, f.end = context.WithCancel(context.Background())
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = f.behind.ErrorLog
	f.Start()
	return f, nil
}

// Close ends every request.
func (f *front) Close() {
	f.fail(whole)
	f.CloseClientConnections()
	f.Server.Close()
}

// kubeconfig writes how to reach the front, and returns the file.
func (f *front) kubeconfig(dir string) (string, error) {
	file, c := filepath.Join(dir, ownKube), api.NewConfig()
	c.Clusters["front"] = &api.Cluster{Server: f.URL}
	c.Contexts["front"] = &api.Context{Cluster: "front"}
	c.CurrentContext = "front"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return file, nil
}

// fail has the kind's requests fail from now on. Those that are under way end.
func (f *front) fail(how failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails, f.asked, f.taken = how, 0, false
	f.end()
	f.until, f.end = context.WithCancel(context.Background())
}

// failedOften says how often requests failed, if that is not often.
func (f *front) failedOften(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked < 3 {
		return fmt.Sprintf("%d requests failed", f.asked), nil
	}
	return "", nil
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || path.Base(r.URL.Path) != f.resource {
		f.behind.ServeHTTP(out, r)
		return
	}
	f.mu.Lock()
	how, until, older := f.fails, f.until, f.older
	f.asked++
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	switch how {
	case whole:
	case cut:
		out = &short{out, cutAt}
	case stale:
		if r = f.stale(out, r.WithContext(ctx), older); r == nil {
			return
		}
	default:
		refuse(out, int(how), f.resource)
		return
	}
	f.behind.ServeHTTP(out, r.WithContext(ctx))
}

// refuse answers as an API server does.
func refuse(out http.ResponseWriter, code int, resource string) {
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	}[code]
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	fmt.Fprintf(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no %s now"}`,
		reason, code, resource)
}

// short is an answer that breaks off.
type short struct {
	http.ResponseWriter
	left int
}

var errCut = errors.New("the answer breaks off here")

// Write implements io.Writer.
func (s *short) Write(b []byte) (int, error) {
	if len(b) <= s.left {
		s.left -= len(b)
		return s.ResponseWriter.Write(b)
	}
	n, err := s.ResponseWriter.Write(b[:s.left])
	s.left -= n
	return n, errors.Join(err, errCut)
}

// Unwrap is for http.ResponseController.
func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }
