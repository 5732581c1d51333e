package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/sandbox/node"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

const downTimeout = time.Minute

// Namespace is the namespace of the pods. BareNamespace replaces it in the names of logical ports that belong to no
// pod.
const (
	Namespace     = "attach"
	BareNamespace = "bare"
)

// Bed is the node with its cluster.
type Bed struct {
	cluster *sandbox.Cluster
	node    *node.Node
	kube    kubernetes.Interface
	plugin  string         // path of ovn_cni
	subnets []netip.Prefix // of the node
	bound   *load.Tracker  // logical ports that ovn-controller knows
	sb      *ovsdbwire.Client
	ovs     *switchClient
}

// New starts a dual-stack cluster of one node with the programs in bin. It replaces a sandbox of the same name. w gets
// progress messages. After an error, nothing is left behind.
func New(ctx context.Context, name, bin string, w io.Writer) (b *Bed, err error) {
	c, err := sandbox.Up(ctx, sandbox.Options{Name: name, Nodes: 1, DualStack: true, BinDir: bin, Replace: true,
		Progress: w})
	if err != nil {
		return nil, err
	}
	b = &Bed{cluster: c, node: c.Nodes[0], plugin: filepath.Join(bin, "ovn_cni"),
		bound: load.NewTracker("the port bindings")}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.node.StopService(ctx, node.Kubelet, syscall.SIGTERM); err != nil {
		return b, err
	}
	if b.kube, err = c.Control.Client(); err != nil {
		return b, err
	}
	if err := b.readSubnets(ctx); err != nil {
		return b, err
	}
	if err := load.Namespace(ctx, b.kube, Namespace); err != nil {
		return b, err
	}
	if err := b.watchBindings(); err != nil {
		return b, err
	}
	b.ovs, err = dialSwitch(filepath.Join(b.node.Spec.RunDir(), "openvswitch/db.sock"))
	return b, err
}

// Close removes everything.
func (b *Bed) Close() error {
	var errs []error
	if b.sb != nil {
		errs = append(errs, b.sb.Close())
	}
	if b.ovs != nil {
		errs = append(errs, b.ovs.wire.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	return errors.Join(append(errs, b.cluster.Down(ctx))...)
}

func (b *Bed) readSubnets(ctx context.Context) error {
	const key = "k8s.ovn.org/node-subnets"
	n, err := b.kube.CoreV1().Nodes().Get(ctx, b.node.Spec.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	var subnets map[string][]netip.Prefix
	if err := json.Unmarshal([]byte(n.Annotations[key]), &subnets); err != nil {
		return fmt.Errorf("reading annotation %s of the node, %q: %w", key, n.Annotations[key], err)
	}
	b.subnets = subnets["default"]
	return nil
}

// watchBindings follows the port bindings in the Southbound database.
func (b *Bed) watchBindings() (err error) {
	if b.sb, err = ovsdbwire.Dial(b.cluster.Control.Host(control.SBSocket)); err != nil {
		return err
	}
	return b.sb.Monitor("OVN_Southbound", "Port_Binding", []string{"logical_port"},
		func(_ string, rows map[string]ovsdbwire.RowUpdate) {
			for _, u := range rows {
				var row struct {
					LogicalPort string `json:"logical_port"`
				}
				raw := u.New()
				if raw == nil {
					continue
				}
				if err := json.Unmarshal(raw, &row); err != nil {
					b.bound.Fail(fmt.Errorf("reading a port binding: %w", err))
					return
				}
				if ns, name, ok := strings.Cut(row.LogicalPort, "_"); ok {
					b.bound.See(load.Name{Namespace: ns, Name: name})
				}
			}
		})
}

// Create makes the i-th pod.
func (b *Bed) Create(ctx context.Context, i int) error {
	p := load.Pod(Namespace, i, 1)
	p.Spec.NodeName = b.node.Spec.Name
	if _, err := b.kube.CoreV1().Pods(Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a pod: %w", err)
	}
	return nil
}

// WaitBound waits until ovn-controller can know n logical ports of a namespace.
func (b *Bed) WaitBound(ctx context.Context, namespace string, n int) error {
	_, err := b.bound.Wait(ctx, namespace, n)
	return err
}

// Netns makes the network namespaces of the first n pods of a namespace.
func (b *Bed) Netns(ctx context.Context, namespace string, n int) error {
	var script strings.Builder
	script.WriteString("set -e\n")
	for i := range n {
		fmt.Fprintf(&script, "ip netns add %s\nip -n %[1]s link set lo up\n", netnsName(namespace, i))
	}
	_, err := b.node.Run(ctx, "/bin/sh", "-c", script.String())
	return err
}

func netnsName(namespace string, i int) string { return fmt.Sprintf("%s-%d", namespace, i) }

// Ports counts the ports of br-int that belong to containers.
func (b *Bed) Ports(ctx context.Context) (int, error) {
	out, err := b.node.Run(ctx, "ovs-vsctl", "--bare", "--columns=name", "find", "Interface", `external_ids:sandbox!=""`)
	return len(strings.Fields(out)), err
}
