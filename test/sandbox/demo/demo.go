package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
)

// patience is how long any one thing may take.
const patience = time.Minute

// App is the label and the name of the example's Deployment and Service.
const App = "web"

// Demo is one demonstration.
type Demo struct {
	Cluster  *sandbox.Cluster
	Examples string // directory of manifests
	Out      io.Writer

	client *kubernetes.Clientset
}

// Run shows everything.
func (d *Demo) Run(ctx context.Context) error {
	client, err := d.Cluster.Control.Client()
	if err != nil {
		return err
	}
	d.client = client
	steps := []func(context.Context) error{d.deploy, d.show, d.pings, d.service, d.delete, d.repair, d.restart}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("demonstrating: %w", err)
		}
	}
	return nil
}

func (d *Demo) title(format string, args ...any) {
	fmt.Fprintf(d.Out, "\n=== "+format+"\n", args...)
}

// sandbox is how a person would have run the command.
func (d *Demo) sandbox(args ...string) {
	fmt.Fprintf(d.Out, "$ sandbox --name %s %s\n", d.Cluster.Options.Name, strings.Join(args, " "))
}

// run prints what a command prints.
func (d *Demo) run(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	fmt.Fprint(d.Out, string(out))
	if err != nil {
		return string(out), fmt.Errorf("running %s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(out), nil
}

func (d *Demo) kubectl(ctx context.Context, args ...string) error {
	d.sandbox(append([]string{"kubectl"}, args...)...)
	_, err := d.run(d.Cluster.Kubectl(ctx, args...))
	return err
}

func (d *Demo) deploy(ctx context.Context) error {
	d.title("Three pods, one on each node, and a service")
	files, err := filepath.Glob(filepath.Join(d.Examples, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no manifests in %s: %w", d.Examples, errors.Join(err, errors.New("want *.yaml")))
	}
	sort.Strings(files)
	for _, f := range files {
		if err := d.kubectl(ctx, "apply", "-f", f); err != nil {
			return err
		}
	}
	return d.kubectl(ctx, "rollout", "status", "deployment/"+App, "--timeout="+patience.String())
}

func (d *Demo) show(ctx context.Context) error {
	d.title("What the master wrote to OVN's Northbound database")
	d.sandbox("nbctl", "show")
	out, err := d.Cluster.NBCtl(ctx, "show")
	fmt.Fprint(d.Out, out)
	if err != nil {
		return err
	}
	d.title("The same pods as Kubernetes sees them")
	return d.kubectl(ctx, "get", "pods", "-o", "wide")
}

// pods are the example's, in the order of their nodes.
func (d *Demo) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := d.client.CoreV1().Pods(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + App})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.PodIP == ""
	})
	sort.Slice(pods, func(i, j int) bool { return pods[i].Spec.NodeName < pods[j].Spec.NodeName })
	if len(pods) < 2 {
		return nil, fmt.Errorf("%d pods of %s have an address, want one on each node", len(pods), App)
	}
	return pods, nil
}

// pings sends packets between two nodes and shows that the tunnel carried them.
func (d *Demo) pings(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	from, to := pods[0], pods[len(pods)-1]
	d.title("A pod on %s pings a pod on %s: through a Geneve tunnel, in user space", from.Spec.NodeName, to.Spec.NodeName)
	node, err := d.Cluster.Node(from.Spec.NodeName)
	if err != nil {
		return err
	}
	before, err := sent(ctx, node.Member)
	if err != nil {
		return err
	}
	for _, ip := range to.Status.PodIPs {
		d.sandbox("exec", from.Name, "--", "ping", "-c3", ip.IP)
		cmd := d.Cluster.Kubectl(ctx, "exec", from.Name, "--", "ping", "-c3", ip.IP)
		if _, err := d.run(cmd); err != nil {
			return err
		}
	}
	var after int
	err = d.until(ctx, "the tunnel's counters show the pings", func() (bool, error) {
		after, err = sent(ctx, node.Member) // Open vSwitch updates them every few seconds
		return after >= before+3*len(to.Status.PodIPs), err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "Geneve packets that %s sent meanwhile: %d\n", from.Spec.NodeName, after-before)
	return nil
}

// sent counts the packets that a node has sent into its tunnels.
func sent(ctx context.Context, m *member.Member) (int, error) {
	out, err := m.Run(ctx, "ovs-vsctl", "--bare", "--columns=statistics", "find", "Interface", "type=geneve")
	if err != nil {
		return 0, err
	}
	total := 0
	for _, field := range strings.Fields(out) {
		if value, ok := strings.CutPrefix(field, "tx_packets="); ok {
			var n int
			if _, err := fmt.Sscan(value, &n); err != nil {
				return 0, fmt.Errorf("reading a tunnel's statistics %q: %w", out, err)
			}
			total += n
		}
	}
	return total, nil
}

// service asks the ClusterIP from a pod and from a node until every backend has
// answered.
func (d *Demo) service(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	svc, err := d.client.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, App, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the service: %w", err)
	}
	from, node := pods[0].Name, pods[0].Spec.NodeName
	on, err := d.Cluster.Node(node)
	if err != nil {
		return err
	}
	for _, ip := range svc.Spec.ClusterIPs {
		url := "http://" + net.JoinHostPort(ip, "80") + "/"
		d.title("The service at %s, from a pod and from a node", url)
		inPod := func() *exec.Cmd { return d.Cluster.Kubectl(ctx, "exec", from, "--", "wget", "-qO-", "-T3", url) }
		onNode := func() *exec.Cmd { return on.Command(ctx, "busybox", "wget", "-qO-", "-T3", url) }
		d.sandbox("exec", from, "--", "wget", "-qO-", url)
		if err := d.everyone(ctx, pods, inPod); err != nil {
			return err
		}
		d.sandbox("node", node, "--", "busybox", "wget", "-qO-", url)
		if err := d.everyone(ctx, pods, onNode); err != nil {
			return err
		}
	}
	return nil
}

// everyone repeats a question until each pod has answered, and prints how often
// each did.
func (d *Demo) everyone(ctx context.Context, pods []corev1.Pod, ask func() *exec.Cmd) error {
	answers := map[string]int{}
	err := d.until(ctx, "every pod has answered", func() (bool, error) {
		out, err := ask().Output()
		if err == nil {
			who, _, _ := strings.Cut(string(out), " ")
			if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == who }) {
				return false, fmt.Errorf("%q answered, which is none of the service's pods", who)
			}
			answers[who]++
		}
		return len(answers) == len(pods), nil
	})
	for _, p := range pods {
		fmt.Fprintf(d.Out, "  %s on %s answered %d times\n", p.Name, p.Spec.NodeName, answers[p.Name])
	}
	return err
}

func (d *Demo) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
