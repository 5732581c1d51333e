package attacks

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
)

// tenant is the namespace of the pod's author. system is that of the product's ServiceAccounts.
const (
	tenant = "tenant"
	system = "ovn-kubernetes"
)

// bed is a sandbox with two nodes, of which n1 is a gateway, and a client for everybody who may attack.
type bed struct {
	*sandbox.Cluster
	admin, agent, kubelet, author, binder kubernetes.Interface
	bound, unbound                        kubernetes.Interface // the agent's ServiceAccount, with tokens of two sorts
}

func up(t *testing.T) bed {
	t.Helper()
	c := machines.Up(t, sandbox.Options{Name: "attacks", Nodes: 2, Gateways: 1, DualStack: true,
		MasterArgs: []string{"--leader-elect"}})
	conf, err := c.Control.RESTConfig()
	must(t, err)
	b := bed{Cluster: c, admin: clientOf(t, conf)}
	kubelet, agent := control.NodeKubeconfigs(c.Options.State(), "n1")
	b.kubelet, b.agent = b.fromFile(t, kubelet), b.fromFile(t, agent)
	b.makeTenant(t)
	b.author, b.binder = b.user(t, "author"), b.user(t, "binder")
	b.makePods(t)
	b.bound, b.unbound = b.account(t, true), b.account(t, false)
	return b
}

func clientOf(t *testing.T, conf *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(conf)
	must(t, err)
	return client
}

// fromFile is a client with the credentials of a kubeconfig.
func (b bed) fromFile(t *testing.T, file string) kubernetes.Interface {
	t.Helper()
	conf, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	conf.Dial, conf.QPS = b.Control.Dial, -1
	return clientOf(t, conf)
}

// user is a client of an ordinary user.
func (b bed) user(t *testing.T, name string) kubernetes.Interface {
	t.Helper()
	conf, err := b.Control.RESTConfig()
	must(t, err)
	conf.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return clientOf(t, conf)
}
