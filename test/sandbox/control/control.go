package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/test/sandbox/member"
	"github.com/northbound-net/northbound/test/sandbox/pki"
)

// Name of the control machine.
const Name = "control"

// Ports on the control machine, and the master's metrics on its loopback.
const (
	APIPort       = 6443
	NBPort        = 6641
	SBPort        = 6642
	NBRaftPort    = 6643
	SBRaftPort    = 6644
	SBFullPort    = 16642 // of the Southbound database in a cluster, for ovn-northd: its clients have no role
	MasterMetrics = "127.0.0.1:9409"
)

// Names of its services.
const (
	APIServer = "apiserver"
	NB        = "nb"
	SB        = "sb"
	Northd    = "northd"
	Master    = "master"
)

// Sockets of the databases, inside the machine.
const (
	NBSocket = "/run/ovn/ovnnb_db.sock"
	SBSocket = "/run/ovn/ovnsb_db.sock"
)

// Config configures the control plane.
type Config struct {
	Addrs          []netip.Prefix // of the machine
	Index          int            // of the machine among the control machines
	Machines       []netip.Addr   // of every control machine, by which others reach its databases
	ServiceCIDRs   string
	ClusterSubnets string
	Nodes          []string // the nodes that get an identity
	Controllers    string   // of kube-controller-manager; empty: those that pods and services need
	MasterArgs     []string // further arguments of ovnkube master
	Chart          bool     // the chart brings the roles and admission policies
	Audit          bool     // record what ovnkube asks of the API server
}

// Control is the control machine, or one of several. The first one alone has the API server.
type Control struct {
	*member.Member
	Config Config
}

// Dir is the directory of certificates, kubeconfigs and etcd's data. All control machines share it.
func (c *Control) Dir() string { return filepath.Join(c.Spec.State, Name, "api") }

// AdminKubeconfig is the administrator's kubeconfig file.
func (c *Control) AdminKubeconfig() string { return filepath.Join(c.Dir(), "admin.kubeconfig") }

func (c *Control) masterKubeconfig() string { return filepath.Join(c.Dir(), "master.kubeconfig") }

// NodeKubeconfigs returns the kubeconfig files of a node's kubelet and agent.
func NodeKubeconfigs(state, node string) (kubelet, agent string) {
	dir := filepath.Join(state, Name, "api")
	return filepath.Join(dir, node+".kubelet.kubeconfig"), filepath.Join(dir, node+".agent.kubeconfig")
}

// Host returns the host's path of a path in the machine's /run.
func (c *Control) Host(path string) string {
	return filepath.Join(c.Spec.RunDir(), strings.TrimPrefix(path, "/run/"))
}

// StartAPI makes the identities and starts the Kubernetes control plane. It returns when the API server is ready and
// the identities have their rights.
func (c *Control) StartAPI(ctx context.Context) error {
	if err := c.identities(); err != nil {
		return fmt.Errorf("making the cluster's identities: %w", err)
	}
	ready := filepath.Join(c.Dir(), "ready")
	argv := []string{
		"sandbox-apiserver", "--dir", c.Dir(), "--bind", "0.0.0.0", "--advertise", c.addr().String(), "--port",
		strconv.Itoa(APIPort),
		"--service-cidrs", c.Config.ServiceCIDRs, "--scheduler", "--ready-file", ready,
	}
	if c.Config.Controllers != "" {
		argv = append(argv, "--controllers", c.Config.Controllers)
	}
	if c.Config.Audit {
		flags, err := c.auditFlags()
		if err != nil {
			return err
		}
		argv = append(argv, flags...)
	}
	err := c.StartService(ctx, member.Service{Name: APIServer, Argv: argv})
	if err != nil {
		return err
	}
	err = c.Until(ctx, "the API server is ready", func(context.Context) bool {
		_, err := os.Stat(ready)
		return err == nil
	}, APIServer)
	if err != nil {
		return err
	}
	if c.Config.Chart {
		return nil
	}
	return c.grant(ctx)
}

func (c *Control) addr() netip.Addr { return c.Config.Addrs[0].Addr() }

// Server is the URL of the API server in the sandbox's network.
func (c *Control) Server() string {
	return "https://" + netip.AddrPortFrom(c.addr(), APIPort).String()
}

func (c *Control) identities() error {
	if err := os.MkdirAll(c.Dir(), 0o700); err != nil {
		return err
	}
	ca, err := pki.New(c.Dir())
	if err != nil {
		return err
	}
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	for _, p := range c.Config.Addrs {
		addrs = append(addrs, p.Addr())
	}
	for _, text := range strings.Split(c.Config.ServiceCIDRs, ",") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("parsing service CIDR %q: %w", text, err)
		}
		addrs = append(addrs, p.Masked().Addr().Next()) // the kubernetes service's
	}
	hosts := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	errs := []error{
		ca.Server(c.Dir(), "apiserver", addrs, hosts),
		ca.Client(c.Dir(), "kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
		pki.Key(filepath.Join(c.Dir(), "sa.key")),
		ca.Kubeconfig(c.AdminKubeconfig(), c.Server(), "admin", "system:masters"),
		ca.Kubeconfig(c.masterKubeconfig(), c.Server(), masterUser),
	}
	for _, n := range c.Config.Nodes {
		kubelet, agent := NodeKubeconfigs(c.Spec.State, n)
		errs = append(errs,
			ca.Kubeconfig(kubelet, c.Server(), "system:node:"+n, "system:nodes"),
			ca.Kubeconfig(agent, c.Server(), agentUser(n), agentGroup))
	}
	return errors.Join(errs...)
}

// RESTConfig returns the administrator's client configuration. It works from any network namespace.
func (c *Control) RESTConfig() (*rest.Config, error) {
	conf, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's kubeconfig: %w", err)
	}
	conf.Dial = c.Dial
	conf.QPS = -1
	return conf, nil
}

// Client returns a client of the API server with the administrator's rights.
func (c *Control) Client() (*kubernetes.Clientset, error) {
	conf, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return client, nil
}

// Sysctls are those of the control machine, which is also the router to the outside.
func Sysctls() map[string]string {
	return map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}
}

// StartMaster starts ovnkube master, and returns when it reports ready. The only one takes part in no election: as a
// standby it would be ready before it works, and it would end whenever a busy machine keeps it from renewing.
func (c *Control) StartMaster(ctx context.Context) error {
	argv := []string{
		"ovnkube", "master", "--kubeconfig", c.masterKubeconfig(), "--nb-address", c.remote(NBPort),
		"--nb-privkey", c.NBKeys().Key, "--nb-cert", c.NBKeys().Cert, "--nb-cacert", c.NBKeys().CA,
		"--cluster-subnets", c.Config.ClusterSubnets, "--k8s-service-cidrs", c.Config.ServiceCIDRs,
		"--metrics-bind-address", MasterMetrics, fmt.Sprintf("--leader-elect=%t", c.clustered()),
	}
	argv = append(argv, c.Config.MasterArgs...)
	if err := c.StartService(ctx, member.Service{Name: Master, Argv: argv}); err != nil {
		return err
	}
	return c.Until(ctx, "ovnkube master is ready", func(ctx context.Context) bool {
		_, err := c.Get(ctx, "http://"+MasterMetrics+"/readyz")
		return err == nil
	}, Master)
}
