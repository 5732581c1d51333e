package kubeio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// versionTimeout is how long an API server may take to say which it is.
const versionTimeout = 10 * time.Second

// Clients is the ways to talk to one API server.
type Clients struct {
	Server  string
	Kube    kubernetes.Interface
	patches rest.Interface // of the core group; answers are not decoded
	leases  coordinationv1client.LeasesGetter
}

// NewClients prepares clients; it does not connect. agent names the program in
// the API server's logs.
func NewClients(k config.Kubernetes, agent string) (*Clients, error) {
	rc, err := restConfig(k)
	if err != nil {
		return nil, err
	}
	rc.UserAgent = agent
	rc.QPS = -1 // the API server's priority and fairness decides, not we
	patches, err := patchClient(rc)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the API server %s: %w", rc.Host, err)
	}
	rc.ContentType, rc.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the API server %s: %w", rc.Host, err)
	}
	leases, err := leaseClient(rc)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of the API server %s: %w", rc.Host, err)
	}
	return &Clients{Server: rc.Host, Kube: kube, patches: patches, leases: leases}, nil
}

// patchAnswer asks for no more of a patched object than its metadata: an answer
// there must be, but nobody reads it.
const patchAnswer = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patchClient is a client for patches of the core group. They go over HTTP/1.1,
// a connection for each that is under way: as streams of one HTTP/2 connection,
// client-go's default, they were seen to fall behind while others made many pods
// (docs/operate/performance.md). Watches stay with HTTP/2, whose pings tell when
// a connection is dead.
func patchClient(rc *rest.Config) (rest.Interface, error) {
	c := rest.CopyConfig(rc)
	c.NextProtos = []string{"http/1.1"}
	c.AcceptContentTypes = patchAnswer
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(c)
}

func restConfig(k config.Kubernetes) (*rest.Config, error) {
	switch {
	case k.Kubeconfig != "" && k.APIServer != "":
		return nil, errors.New("--kubeconfig and --k8s-apiserver: give one of them")
	case k.Kubeconfig != "":
		rc, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("loading --kubeconfig %s: %w", k.Kubeconfig, err)
		}
		return rc, nil
	case k.APIServer != "":
		return directConfig(k)
	}
	rc, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("no API server given: want --kubeconfig or --k8s-apiserver, or to run in a pod")
	}
	if err != nil {
		return nil, fmt.Errorf("loading the pod's service account: %w", err)
	}
	return rc, nil
}

func directConfig(k config.Kubernetes) (*rest.Config, error) {
	host := k.APIServer
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	rc := &rest.Config{Host: host, BearerToken: k.Token}
	if k.CACert != "" {
		if _, err := os.Stat(k.CACert); err != nil {
			return nil, fmt.Errorf("loading --k8s-cacert: %w", err)
		}
		rc.CAFile = k.CACert
	}
	return rc, nil
}

// WaitForServer returns once the API server answers, or with the context's
// error. Each failure is told in the log, with what to look at.
func (c *Clients) WaitForServer(ctx context.Context, log *slog.Logger) error {
	for retry := 250 * time.Millisecond; ; retry = min(2*retry, 5*time.Second) {
		v, err := c.version(ctx)
		if err == nil {
			log.Info("kubernetes connected", "server", c.Server, "version", v)
			return nil
		}
		log.Warn("kubernetes not connected", "server", c.Server, "error", err, "retry", retry)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retry):
		}
	}
}

// version asks the server for its version, for at most versionTimeout.
func (c *Clients) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	body, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return "", fmt.Errorf("reading its version: %w", err)
	}
	return v.GitVersion, nil
}
