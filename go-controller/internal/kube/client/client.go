package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// versionTimeout limits how long an API server may take to tell its version.
const versionTimeout = 10 * time.Second

// dialTimeout limits one attempt to connect. The kernel repeats an unanswered SYN ever more seldom. A new attempt
// reaches a server sooner that is back on the network.
const dialTimeout = 3 * time.Second

// Clients are the connections to one API server.
type Clients struct {
	Server  string
	Kube    kubernetes.Interface
	Patches rest.Interface              // for annotation patches; answers are not decoded
	Dynamic dynamic.Interface           // for kinds that client-go does not know
	Kinds   *Discovery                  // which kinds there are; nil if nobody can tell
	leases  coordinationv1.LeasesGetter // for Leases of gateways; nil for Kube's
}

// GatewayLeases is the client for Leases of gateways.
func (c *Clients) GatewayLeases() coordinationv1.LeasesGetter {
	if c.leases == nil {
		return c.Kube.CoordinationV1()
	}
	return c.leases
}

// New prepares clients; it does not connect. agent names the program in the API server's logs.
func New(k config.Kubernetes, agent string) (*Clients, error) {
	rc, err := restConfig(k)
	if err != nil {
		return nil, err
	}
	rc.UserAgent = agent
	rc.QPS = -1 // the API server's priority and fairness limits requests
	rc.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	c := &Clients{Server: rc.Host}
	for _, prepare := range []func() error{
		func() (err error) { c.Patches, err = patchClient(rc); return err },
		func() (err error) {
			c.Kube, err = kubernetes.NewForConfig(withCuts(protobuf(rc)))
			return err
		},
		func() (err error) { c.Dynamic, err = dynamic.NewForConfig(rc); return err },
		func() (err error) { c.Kinds, err = newDiscovery(rc); return err },
		func() (err error) { c.leases, err = leaseClient(protobuf(rc)); return err },
	} {
		if err := prepare(); err != nil {
			return nil, fmt.Errorf("preparing the client of the API server %s: %w", rc.Host, err)
		}
	}
	return c, nil
}

const protobufType = "application/vnd.kubernetes.protobuf"

// protobuf is rc with protobuf as the preferred encoding.
func protobuf(rc *rest.Config) *rest.Config {
	c := rest.CopyConfig(rc)
	c.ContentType = protobufType
	c.AcceptContentTypes = c.ContentType + ",application/json"
	return c
}

// patchAnswer asks for the metadata of a patched object only: nobody reads the answer, but there must be one.
const patchAnswer = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patchClient is a client for patches of any kind. They go over HTTP/1.1, with a connection for each request under way.
// Patches that shared one HTTP/2 connection, client-go's default, fell behind while others made many pods
// (docs/operate/performance.md). Watches stay with HTTP/2, whose pings tell when a connection is dead.
func patchClient(rc *rest.Config) (rest.Interface, error) {
	c := http1(rc)
	c.AcceptContentTypes = patchAnswer
	// Each request sets its own path; the client wants some group.
	c.APIPath, c.GroupVersion = "/api", &corev1.SchemeGroupVersion
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(c)
}

// leaseClient is a client for Leases alone. With HTTP/1.1 an attempt without an answer closes its connection, and the
// next attempt opens another. HTTP/2 would try the same dead connection for another 45 seconds.
func leaseClient(rc *rest.Config) (coordinationv1.LeasesGetter, error) {
	return coordinationv1.NewForConfig(http1(rc))
}

func http1(rc *rest.Config) *rest.Config {
	c := rest.CopyConfig(rc)
	c.NextProtos = []string{"http/1.1"}
	return c
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
	if k.ServerFrom != "" {
		rc.Host, err = serverOf(k.ServerFrom)
	}
	return rc, err
}

// serverOf is the URL of the API server in a kubeconfig's current context. The files that the kubeconfig names need not
// be here. A pod's token is for https alone.
func serverOf(file string) (string, error) {
	k, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return "", fmt.Errorf("loading --k8s-server-from %s: %w", file, err)
	}
	server := ""
	if c := k.Contexts[k.CurrentContext]; c != nil && k.Clusters[c.Cluster] != nil {
		server = k.Clusters[c.Cluster].Server
	}
	if !strings.HasPrefix(server, "https://") {
		return "", fmt.Errorf("loading --k8s-server-from %s: server %q of its current context: want https://HOST:PORT",
			file, server)
	}
	return server, nil
}

// directConfig is the configuration without a kubeconfig. A token does not leave this machine in clear text. The other
// sources need no such check: client-go uses the secrets of a kubeconfig for https only, and a pod's with https only.
func directConfig(k config.Kubernetes) (*rest.Config, error) {
	host := k.APIServer
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	rc := &rest.Config{Host: host, BearerToken: k.Token}
	u, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, fmt.Errorf("reading --k8s-apiserver %q: %w", k.APIServer, err)
	}
	if k.Token != "" && u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("--k8s-apiserver %s: --k8s-token would be readable on the network: want https://, "+
			"or a loopback address such as http://127.0.0.1:8080", k.APIServer)
	}
	if k.CACert != "" {
		if _, err := os.Stat(k.CACert); err != nil {
			return nil, fmt.Errorf("loading --k8s-cacert: %w", err)
		}
		rc.CAFile = k.CACert
	}
	return rc, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// WaitForServer returns once the API server answers, or with the context's error. It logs each failed attempt. Daemons
// use it: somebody may replace a certificate while they wait.
func (c *Clients) WaitForServer(ctx context.Context, log *slog.Logger) error {
	return c.wait(ctx, log, func(error) bool { return false })
}

// ReachServer is WaitForServer for commands. It does not wait for a server whose certificate is refused.
func (c *Clients) ReachServer(ctx context.Context, log *slog.Logger) error {
	err := c.wait(ctx, log, certificateRefused)
	if certificateRefused(err) {
		return fmt.Errorf("the certificate is refused: %w: want the CA certificate of this cluster, and a name or address "+
			"that the certificate has", err)
	}
	return err
}

// certificateRefused tells whether a connection ended because of the server's certificate.
func certificateRefused(err error) bool {
	var refused *tls.CertificateVerificationError
	return errors.As(err, &refused)
}

// wait returns once the API server answers, with an error that is final, or with the context's.
func (c *Clients) wait(ctx context.Context, log *slog.Logger, final func(error) bool) error {
	for retry := 250 * time.Millisecond; ; retry = min(2*retry, 2*time.Second) {
		v, err := c.Version(ctx)
		if err == nil {
			log.Info("kubernetes connected", "server", c.Server, "version", v)
			return nil
		}
		if final(err) {
			return err
		}
		log.Warn("kubernetes not connected", "server", c.Server, "error", err, "retry", retry)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retry):
		}
	}
}

// Version asks the API server for its version, for at most versionTimeout.
func (c *Clients) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	body, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return "", fmt.Errorf("reading the version of the API server: %w", err)
	}
	return v.GitVersion, nil
}
