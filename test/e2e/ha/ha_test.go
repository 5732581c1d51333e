package ha

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/chaos/ledger"
	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
	"github.com/northbound-net/northbound/test/scale/load"
)

// nothing is killed in the first round: it shows what the pods that come and go cost alone.
const nothing = "nothing"

// limit is for everything to be as it should be after a fault, on a busy machine.
const limit = 3 * time.Minute

// bed is a cluster whose pods come and go.
type bed struct {
	*sandbox.Cluster
	kube    kubernetes.Interface
	ledger  *ledger.Ledger
	churn   *churn
	streams []*machines.Stream // between pods that exist all the time
	table   *tabwriter.Writer
}

// TestLeadersKilled kills the leader of each database, the active ovn-northd and the leading master. Another one must
// take over. Then the Northbound database is what the cluster wants, and a new pod is Ready and can be reached. No
// address was lost or given twice, and pods that existed hardly lost a packet: see mostLost.
func TestLeadersKilled(t *testing.T) {
	b := up(t)
	var table strings.Builder
	b.table = tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(b.table, "killed\tno Northbound write for\tno Southbound write for\tnew pod Ready after\t"+
		"packets lost\tpods made")
	for _, service := range []string{nothing, control.NB, control.SB, control.Northd, control.Master} {
		b.kill(t, service)
	}
	must(t, b.table.Flush())
	t.Logf("%d pods made, the others deleted again\n%s", b.churn.made, table.String())
}

func up(t *testing.T) *bed {
	t.Helper()
	b := &bed{Cluster: machines.Up(t, sandbox.Options{Name: "ha", Nodes: 3, HA: true, DualStack: true})}
	client, err := b.Control.Client()
	must(t, err)
	b.kube = client
	b.ledger = ledger.Follow(t.Context(), client)
	must(t, load.Nodes(t.Context(), client, churnNodes))
	must(t, load.Namespace(t.Context(), client, churnNamespace))
	b.churn = &churn{kube: client}
	b.churn.fill(t)
	b.pod(t, "steady-1", "n1")
	steady := b.pod(t, "steady-2", "n2")
	b.reaches(t, steady)
	for _, ip := range steady {
		ping := func(ctx context.Context) *exec.Cmd {
			return b.Kubectl(ctx, "exec", "steady-1", "--", "ping", "-i", "0.01", ip.String())
		}
		b.streams = append(b.streams, machines.StartStream(t, "steady-1 to "+ip.String(), ping))
	}
	machines.MoreReplies(t, b.streams, 100)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kill ends one service that leads, and starts it again when another has taken over.
func (b *bed) kill(t *testing.T, service string) {
	t.Helper()
	stop := b.churn.start(t)
	victim := b.leader(t, service, nil)
	nb := b.watch(t, victim, control.NBSocket, "OVN_Northbound", "Logical_Switch_Port", "name")
	sb := b.watch(t, victim, control.SBSocket, "OVN_Southbound", "Port_Binding", "logical_port")
	nb.more(t, 50)
	sb.more(t, 50)
	killed := time.Now()
	must(t, victim.StopService(t.Context(), service, syscall.SIGKILL))
	// Not on a node of the pings: Open vSwitch's userspace datapath may lose a packet when it opens a port.
	ips := b.pod(t, service, "n3")
	ready := time.Since(killed)
	b.reaches(t, ips)
	b.leader(t, service, victim)
	nb.more(t, 50)
	sb.more(t, 50)
	machines.MoreReplies(t, b.streams, 100)
	b.restart(t, victim, service)
	stop()
	b.inOrder(t, service)
	t.Logf("%s was killed on %s at %s: all in order after %.1f s, %d pods made so far", service, victim.Spec.Name,
		killed.Format("15:04:05.000"), time.Since(killed).Seconds(), b.churn.made)
	fmt.Fprintf(b.table, "%s on %s\t%.1f s\t%.1f s\t%.1f s\t%s\t%d\n", service, victim.Spec.Name, nb.pause().Seconds(),
		sb.pause().Seconds(), ready.Seconds(), b.lost(t, service), b.churn.made)
	machines.Kubectl(t, b.Cluster, "", "delete", "pod", service)
}

// mostLost is how many packets of a stream a fault may cost: a tenth of a second. Open vSwitch's userspace datapath may
// lose some when all is written at once that has gathered while nobody led (docs/operate/high-availability.md). If a
// fault reached the pods' network itself, it would cost more.
const mostLost = 10

// lost says how many packets the streams lost since the last call. It fails if they are too many. Without a fault, pods
// that come and go may cost one.
func (b *bed) lost(t *testing.T, service string) string {
	t.Helper()
	var out []string
	most := mostLost
	if service == nothing {
		most = 1
	}
	for _, s := range b.streams {
		n, said := s.Take()
		if n > most {
			t.Errorf("%s, want at most %d lost", said, most)
		}
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, " and ")
}

// leader waits until a service has a leader other than the one that is given. Nothing is led by any.
func (b *bed) leader(t *testing.T, service string, other *control.Control) (found *control.Control) {
	t.Helper()
	if service == nothing {
		return b.Control
	}
	machines.Within(t, limit, service+" has a leader", func(ctx context.Context) string {
		if found = b.Leader(ctx, service); found == nil || found == other {
			return "not yet"
		}
		return ""
	})
	return found
}

// restart starts what was killed, and waits until a server of a database has joined its cluster again.
func (b *bed) restart(t *testing.T, on *control.Control, service string) {
	t.Helper()
	if service == nothing {
		return
	}
	must(t, on.RestartService(t.Context(), service, syscall.SIGKILL))
	if service != control.NB && service != control.SB {
		return
	}
	machines.Within(t, limit, service+" has joined again", func(ctx context.Context) string {
		if !on.Joined(ctx, service) {
			return "not yet"
		}
		return ""
	})
}

// inOrder checks the cluster after a fault.
func (b *bed) inOrder(t *testing.T, service string) {
	t.Helper()
	keys := b.Control.NBKeys()
	machines.Within(t, limit, "after the fault the Northbound database is what the cluster wants",
		func(ctx context.Context) string {
			out, err := b.Control.Run(ctx, "ovnkube", "plan", "--log-level", "error", "--kubeconfig",
				b.Control.AdminKubeconfig(), "--nb-address", control.Remote(b.Control.Config.Machines, control.NBPort),
				"--nb-privkey", keys.Key, "--nb-cert", keys.Cert, "--nb-cacert", keys.CA, "--cluster-subnets",
				b.Control.Config.ClusterSubnets, "--k8s-service-cidrs", b.Control.Config.ServiceCIDRs)
			if err != nil {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return b.churn.waiting(ctx)
		})
	for _, wrong := range b.ledger.Take() {
		t.Errorf("%s: %s", service, wrong)
	}
	for _, s := range b.Status(t.Context()) {
		if !sandbox.Healthy([]sandbox.MemberStatus{s}) {
			t.Errorf("%s: %s", service, s)
		}
	}
}

// pod makes a pod on a node, and returns its addresses when it is Ready.
func (b *bed) pod(t *testing.T, name, node string) []netip.Addr {
	t.Helper()
	machines.Kubectl(t, b.Cluster, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: IfNotPresent}]
`, name, node), "apply", "-f", "-")
	machines.Kubectl(t, b.Cluster, "", "wait", "--for=condition=Ready", "--timeout="+limit.String(), "pod", name)
	return machines.PodIPs(t, b.Cluster, name)
}

// reaches waits until an existing pod reaches a new one.
func (b *bed) reaches(t *testing.T, ips []netip.Addr) {
	t.Helper()
	for _, ip := range ips {
		machines.Within(t, limit, "an existing pod reaches "+ip.String(), func(ctx context.Context) string {
			out, err := b.Kubectl(ctx, "exec", "steady-1", "--", "ping", "-c1", "-W1", ip.String()).CombinedOutput()
			if err != nil {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
	}
}
