package policy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// policySets is the environment variable with the number of random sets that are asked about, instead of someSets. The
// file has 60.
const policySets = "POLICY_SETS"

const (
	someSets = 8
	pairs    = 12 // of a client and a server, for each set
	setsFile = "testdata/random.jsonl"

	leastAnswers = 100 // connections that are made, and that are not, in all sets together
)

// randomSet is labels and policies of namespaces x, y and z. The tests of package policytest write them.
type randomSet struct {
	Namespaces      map[string]map[string]string  `json:"namespaces"`
	Pods            map[string]map[string]string  `json:"pods"`
	Policies        []*networkingv1.NetworkPolicy `json:"policies"`
	ClusterPolicies []json.RawMessage             `json:"clusterPolicies"`
}

// randomPorts are those of every pod. What a name stands for differs from pod to pod.
func randomPorts() []int { return []int{53, 80, 443, lowPort, 9000} }

// randomEnd is who asks or is asked, as "ovnkube policy check" calls it.
type randomEnd struct {
	name  string
	asks  machines.Asker // its zero value for the host outside, which has no route to pods
	ports []int          // that answer
}

// randomSets asks with packets about random policies of both kinds, and compares with what the rows do, as "ovnkube
// policy check" has it. The same rows are compared with the answers of libraries elsewhere.
func (b *bed) randomSets(t *testing.T) {
	machines.InstallClusterPolicies(t, b.Cluster)
	b.world(t)
	ends := b.randomEnds(t)
	defer b.become(t, randomSet{}) // other tests begin without any
	allowed, denied := 0, 0
	for i, s := range readSets(t) {
		b.become(t, s)
		machines.FlowsInSync(t, b.Cluster)
		cells := b.randomCells(t, fmt.Sprint("set ", i), ends, rand.New(rand.NewPCG(uint64(i), 61)))
		for _, c := range cells {
			if c.want {
				allowed++
			} else {
				denied++
			}
		}
		if !b.askAll(t, cells) {
			text, err := json.MarshalIndent(s, "", "  ")
			must(t, err)
			t.Fatalf("set %d is %s", i, text)
		}
	}
	t.Logf("%d connections are made, %d are not", allowed, denied)
	if allowed < leastAnswers || denied < leastAnswers {
		t.Errorf("want %d of each at least: the sets prove too little", leastAnswers)
	}
}

func readSets(t *testing.T) (out []randomSet) {
	t.Helper()
	number := int(machines.Number(t, policySets, someSets))
	file, err := os.Open(setsFile)
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for len(out) < number && lines.Scan() {
		var s randomSet
		must(t, json.Unmarshal(lines.Bytes(), &s))
		out = append(out, s)
	}
	must(t, lines.Err())
	if len(out) < number {
		t.Fatalf("%s has %d sets, want %d", setsFile, len(out), number)
	}
	return out
}

// randomEnds makes the pods, and lists who takes part. The pods stay until the cluster goes.
func (b *bed) randomEnds(t *testing.T) (out []randomEnd) {
	for _, namespace := range []string{"x", "y", "z"} {
		b.makeNamespace(t, namespace, nil)
		for i, node := range []string{home, away} {
			name := fmt.Sprint("p", i)
			b.makePod(t, randomPod(namespace, name, node))
			out = append(out, randomEnd{"pod/" + namespace + "/" + name, b.inPod(namespace, name), randomPorts()})
		}
	}
	for i, n := range []string{home, away} {
		must(t, b.label(t, "nodes", "", n, map[string]string{"app": []string{"a", "b"}[i]}))
	}
	for _, e := range out {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(e.name, "pod/"), "/")
		b.awaitPod(t, namespace, name)
	}
	for _, n := range b.Nodes {
		out = append(out, randomEnd{"node/" + n.Spec.Name, machines.On(n.Member), []int{lowPort, highPort}})
	}
	for _, a := range b.outside() {
		out = append(out, randomEnd{name: a.String(), ports: []int{highPort}})
	}
	return out
}

// randomPod answers on all ports. Pods of n1 and of n2 give other numbers to the same names.
func randomPod(namespace, name, node string) *corev1.Pod {
	p := serverPod(namespace, name, node, nil)
	p.Spec.Containers = nil
	named := map[int]corev1.ContainerPort{
		80: {Name: "http"}, 53: {Name: "dns", Protocol: corev1.ProtocolUDP}, 9000: {Name: "metrics"}, lowPort: {Name: "web"}}
	if node == away {
		named = map[int]corev1.ContainerPort{lowPort: {Name: "http"}, 53: {Name: "dns"}, 80: {Name: "web"}}
	}
	for _, port := range randomPorts() {
		c := corev1.Container{Name: fmt.Sprint("port-", port), Image: "localhost/echo:1",
			ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{fmt.Sprint(port)}}
		if n, ok := named[port]; ok {
			n.ContainerPort = int32(port)
			c.Ports = []corev1.ContainerPort{n}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// label gives an object the labels app, tier and env that are named, and takes the others of these away.
func (b *bed) label(t *testing.T, kind, namespace, name string, labels map[string]string) error {
	all := map[string]any{"app": nil, "tier": nil, "env": nil}
	for key, value := range labels {
		all[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": all}})
	if err != nil {
		return err
	}
	core, ctx, as := b.client.CoreV1(), t.Context(), metav1.PatchOptions{}
	switch kind {
	case "nodes":
		_, err = core.Nodes().Patch(ctx, name, types.MergePatchType, patch, as)
	case "namespaces":
		_, err = core.Namespaces().Patch(ctx, name, types.MergePatchType, patch, as)
	default:
		_, err = core.Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, as)
	}
	return err
}

// become replaces the labels and policies of the set before.
func (b *bed) become(t *testing.T, s randomSet) {
	t.Helper()
	ctx := t.Context()
	for _, namespace := range []string{"x", "y", "z"} {
		must(t, b.client.NetworkingV1().NetworkPolicies(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}))
	}
	machines.Kubectl(t, b.Cluster, "", "delete", "clusternetworkpolicies", "--all")
	for name, labels := range s.Namespaces {
		must(t, b.label(t, "namespaces", "", name, labels))
	}
	for pod, labels := range s.Pods {
		namespace, name, _ := strings.Cut(pod, "/")
		must(t, b.label(t, "pods", namespace, name, labels))
	}
	for _, p := range s.Policies {
		_, err := b.client.NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		must(t, err)
	}
	for _, p := range s.ClusterPolicies {
		machines.Kubectl(t, b.Cluster, string(p), "apply", "-f", "-")
	}
}

// checked is what "ovnkube policy check" prints of a client and a server.
type checked struct {
	Connections []struct {
		To      struct{ Address netip.Addr }
		Answers []struct {
			Ports    string
			Allowed  bool
			Database string
		}
	}
}

// randomCells are questions about some pairs, and the answers that the rows give.
func (b *bed) randomCells(t *testing.T, set string, ends []randomEnd, dice *rand.Rand) (out []*cell) {
	t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	room := make(chan struct{}, atOnce)
	asked := map[string]bool{}
	for len(asked) < pairs {
		from, to := ends[dice.IntN(len(ends))], ends[dice.IntN(len(ends))]
		isPod := strings.HasPrefix(from.name, "pod/") || strings.HasPrefix(to.name, "pod/") // policies are about these
		pair := from.name + " " + to.name
		if !isPod || from.name == to.name || from.asks.Name == "" || asked[pair] {
			continue
		}
		asked[pair] = true
		asking.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			cells, err := b.pairCells(t.Context(), set, from, to)
			mu.Lock()
			defer mu.Unlock()
			if out = append(out, cells...); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	return out
}

func (b *bed) pairCells(ctx context.Context, set string, from, to randomEnd) (out []*cell, err error) {
	cmd := b.OVNKube(ctx, "policy", "check", "-o", "json", from.name, to.name)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if denied := new(exec.ExitError); err != nil && (!errors.As(err, &denied) || denied.ExitCode() != 2) {
		return nil, fmt.Errorf("%s: checking %s to %s: %w: %s", set, from.name, to.name, err, errs.String())
	}
	var answer checked
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("%s: reading the check of %s to %s: %w", set, from.name, to.name, err)
	}
	if len(answer.Connections) == 0 {
		return nil, fmt.Errorf("%s: the check of %s to %s knows no connection: %s", set, from.name, to.name, text)
	}
	for _, c := range answer.Connections {
		for _, a := range c.Answers {
			if a.Database != "" {
				return nil, fmt.Errorf("%s: %s to %s: the database has other rows: %s", set, from.name, to.name, a.Database)
			}
		}
		for _, port := range to.ports {
			for _, p := range protocols() {
				protocol := strings.ToLower(string(p))
				one := &cell{table: set, row: from.name, column: to.name, asks: from.asks, protocol: protocol,
					to: netip.AddrPortFrom(c.To.Address, uint16(port)), port: port}
				known := false
				for _, a := range c.Answers {
					if hasPort(a.Ports, protocol, port) {
						one.want, known = a.Allowed, true
					}
				}
				if !known {
					return nil, fmt.Errorf("%s: the check of %s to %s says nothing of %s/%d: %s", set, from.name, to.name,
						protocol, port, text)
				}
				out = append(out, one)
			}
		}
	}
	return out, nil
}

// hasPort tells whether ports, such as "tcp/80,443 udp", have one.
func hasPort(ports, protocol string, port int) bool {
	if ports == "all" {
		return true
	}
	for _, of := range strings.Fields(ports) {
		name, list, limited := strings.Cut(of, "/")
		if name != protocol {
			continue
		}
		if !limited {
			return true
		}
		for _, span := range strings.Split(list, ",") {
			first, last, isRange := strings.Cut(span, "-")
			if !isRange {
				last = first
			}
			low, _ := strconv.Atoi(first) // the numbers that ovnkube prints
			high, _ := strconv.Atoi(last)
			if low <= port && port <= high {
				return true
			}
		}
	}
	return false
}
