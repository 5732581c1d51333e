package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// perTransaction is the number of ports or load balancers in a transaction of the raw writer.
const perTransaction = 100

// limits are the maximum rates of this machine, per second; 0 if not measured.
type limits struct {
	ports, creates, patches float64
	patchCPU                time.Duration // CPU time of a patch on all processors, including the sender
}

// lower is the lower of the two rates that every pod depends on.
func (l limits) lower() float64 { return min(l.ports, l.patches) }

// both is the rate at which the API server could create and patch pods if it had no other work.
func (l limits) both() float64 {
	if l.creates == 0 || l.patches == 0 {
		return 0
	}
	return 1 / (1/l.creates + 1/l.patches)
}

// raw measures the limits.
func (b *bench) raw(ctx context.Context) error {
	var err error
	if b.limits.ports, err = b.rawPorts(ctx); err != nil {
		return err
	}
	b.report.add("raw", "Northbound writes, one connection", "%.0f ports/s", b.limits.ports).
		beside("%d ports, %d a transaction, an insert and a mutate each", b.Pods, perTransaction)
	if err := b.rawPods(ctx); err != nil {
		return err
	}
	b.report.add("raw", "a creation, then a patch", "%.0f pods/s", b.limits.both()).
		beside("computed from the two above: a burst with a master that costs nothing").ratio(b.limits.both(),
		b.limits.lower())
	return nil
}

// rawPorts writes ports like the master's, to a database of its own.
func (b *bench) rawPorts(ctx context.Context) (perSec float64, err error) {
	var switches []any
	for i := range b.Nodes {
		switches = append(switches, object{"op": "insert", "table": "Logical_Switch", "uuid": rowUUID(1, i),
			"row": object{"name": load.NodeName(i)}})
	}
	return b.rawWrites(ctx, "raw", b.Pods, switches, func(i int) []any { return rawPort(i, b.Nodes) })
}

// rawWrites sends the operations for n things, perTransaction at a time, to a new database with the given name, after
// the operations of begin. It returns the number of things a second.
func (b *bench) rawWrites(ctx context.Context, name string, n int, begin []any,
	operations func(i int) []any) (perSec float64, err error) {
	db, err := b.rig.StartNorthbound(ctx, name)
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopped := b.rig.StopNorthbound(db); err == nil {
			err = stopped
		}
	}()
	c, err := ovsdbwire.Dial(db.Socket)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // all answers have arrived
	if err := c.Transact(rig.Database, begin...); err != nil {
		return 0, err
	}
	began := time.Now()
	for i := 0; i < n; i += perTransaction {
		var ops []any
		for j := i; j < min(i+perTransaction, n); j++ {
			ops = append(ops, operations(j)...)
		}
		if err := c.Transact(rig.Database, ops...); err != nil {
			return 0, err
		}
	}
	return perSecond(n, time.Since(began)), nil
}

// object is a JSON object.
type object map[string]any

// rowUUID returns the UUID of the i-th row of a kind.
func rowUUID(kind, i int) string { return fmt.Sprintf("%08d-0000-5000-8000-%012d", kind, i) }

// rawPort returns the operations for a port whose row has columns and lengths like the master's.
func rawPort(i, nodes int) []any {
	name := load.PodName(i)
	address := fmt.Sprintf("0a:58:0a:80:%02x:%02x 10.128.%d.%d", i>>8, i&255, i>>8, i&255)
	row := object{
		"name": "burst_" + name, "addresses": address, "port_security": address,
		"options": ovsMap("requested-chassis", rowUUID(3, i%nodes), "iface-id-ver", rowUUID(4, i)),
		"external_ids": ovsMap("pod", "true", "namespace", "burst", "k8s.ovn.org/owner-type", "Pod",
			"k8s.ovn.org/owner-name", "burst/"+name, "k8s.ovn.org/role", "port"),
	}
	port := rowUUID(2, i)
	return []any{
		object{"op": "insert", "table": "Logical_Switch_Port", "uuid": port, "row": row},
		object{"op": "mutate", "table": "Logical_Switch",
			"where":     []any{[]any{"_uuid", "==", []string{"uuid", rowUUID(1, i%nodes)}}},
			"mutations": []any{[]any{"ports", "insert", []any{"set", []any{[]string{"uuid", port}}}}}},
	}
}

func ovsMap(pairs ...string) []any {
	var out [][]string
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, pairs[i:i+2])
	}
	return []any{"map", out}
}

// rawPods creates, patches and removes pods while no master runs.
func (b *bench) rawPods(ctx context.Context) (err error) {
	const namespace = "raw"
	if err := load.Namespace(ctx, b.rig.Kube, namespace); err != nil {
		return err
	}
	b.limits.creates, _, err = b.rawRate("pod creations", func() error {
		_, err := load.CreatePods(ctx, b.rig.Kube, namespace, b.Pods, b.Nodes)
		return err
	})
	if err != nil {
		return err
	}
	list, err := b.rig.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	b.limits.patches, b.limits.patchCPU, err = b.rawRate("annotation patches", func() error {
		return b.patch(ctx, namespace, list.Items)
	})
	if err != nil {
		return err
	}
	zero := int64(0)
	if err := b.rig.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero},
		metav1.ListOptions{}); err != nil {
		return fmt.Errorf("removing pods: %w", err)
	}
	return nil
}

// rawRate measures the rate at which the API server accepts do for b.Pods pods, and the CPU time of each. It reports
// and returns both.
func (b *bench) rawRate(what string, do func() error) (perSec float64, cpu time.Duration, err error) {
	before, err := spent(b.rig, nil)
	if err != nil {
		return 0, 0, err
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	after, err := spent(b.rig, nil)
	if err != nil {
		return 0, 0, err
	}
	took := after.sub(before)
	rate := perSecond(b.Pods, took.took)
	b.report.disturbed("raw "+what, took)
	b.report.add("raw", what, "%.0f/s", rate).
		beside("%d pods, %d at a time; %s of CPU time each, %s of it the API server's", b.Pods, load.Workers,
			perPod(took.ours(), b.Pods), perPod(took.apiServer, b.Pods))
	return rate, took.ours() / time.Duration(b.Pods), nil
}

// patch annotates pods like the master.
func (b *bench) patch(ctx context.Context, namespace string, items []corev1.Pod) error {
	pods := b.rig.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	return load.Parallel(ctx, len(items), func(ctx context.Context, i int) error {
		body, err := rawPatch(string(items[i].UID), i)
		if err != nil {
			return err
		}
		if _, err := pods.Patch(ctx, items[i].Name, types.MergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("patching a pod: %w", err)
		}
		return nil
	})
}

// rawPatch returns a patch of the same size as the master's.
func rawPatch(uid string, i int) ([]byte, error) {
	ip, gw, mac := fmt.Sprintf("10.128.%d.%d", i>>8, i&255), fmt.Sprintf("10.128.%d.1",
		i>>8), fmt.Sprintf("0a:58:0a:80:%02x:%02x", i>>8, i&255)
	body, err := json.Marshal(object{"metadata": object{"uid": uid, "annotations": object{
		load.PodNetworks: fmt.Sprintf(`{"default":{"ip_addresses":["%s/23"],"mac_address":"%s","gateway_ips":["%s"],`+
			`"ip_address":"%s/23","gateway_ip":"%s","role":"primary"}}`, ip, mac, gw, ip, gw),
		load.PodClassic: fmt.Sprintf(`{"gateway_ip":"%s","ip_address":"%s/23","mac_address":"%s"}`, gw, ip, mac),
	}}})
	if err != nil {
		return nil, fmt.Errorf("making a patch: %w", err)
	}
	return body, nil
}
