package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A flood is 10 Mbit in 1 s, or longer on a slow machine. A limit of 100 kbit/s lets a burst of 0.5 Mbit pass, and a
// quarter of the flood only if that takes 20 s.
const (
	floodPackets = 1000
	floodSize    = 1200 // bytes
	floodPort    = 9    // nobody listens
	limit        = "100k"
)

// limited is a pod on a node, with annotations.
func limited(name, node, annotations string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: limited}, annotations: {%[3]s}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 0
  containers:
  - name: echo
    image: %[4]s
    imagePullPolicy: IfNotPresent
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
`, name, node, annotations, image)
}

// TestBandwidth checks that a limit applies to its pod and direction only, in both families, and follows the annotation
// of a running pod.
func TestBandwidth(t *testing.T) {
	const in, out = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
	apply(t, limited("free", "n3", "")+limited("receiver", "n2", in+": "+limit)+limited("sender", "n1", out+": "+limit))
	ps := readyPods(t, "limited", 3)
	free, receiver, sender := ps[0], ps[1], ps[2]
	for family := range 2 {
		limits(t, sender, free, family, "n1")
		limits(t, free, receiver, family, "n2")
		passes(t, free, sender, family)
		passes(t, receiver, free, family)
	}

	kubectl(t, "annotate", "pod", "free", in+"="+limit)
	kubectl(t, "annotate", "--overwrite", "pod", "sender", out+"=10Mbit")
	eventually(t, "event of the malformed annotation", func() string {
		out := kubectl(t, "get", "events", "--field-selector", "involvedObject.name=sender,reason=InvalidBandwidth", "-o",
			"jsonpath={.items[*].message}")
		if !strings.Contains(out, `"10Mbit" is not a quantity`) {
			return fmt.Sprintf("%q", out)
		}
		return ""
	})
	meters(t, "n1", 0)
	meters(t, "n3", 1)
	limits(t, sender, free, 0, "n3")
	kubectl(t, "annotate", "pod", "receiver", in+"-")
	meters(t, "n2", 0)
	passes(t, sender, receiver, 1)
	// A limited pod is slow, but reachable.
	fromNode(t, "n1").reaches(t, "tcp", hostPort(free.IPs[0], 8080), []string{"free"})
}

// meters waits until n meters are in use on a node. The meters of pods on other nodes exist, too, but no flow uses
// them.
func meters(t *testing.T, node string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d meters in use on %s", n, node), func() string {
		out := must(t, "node", node, "--", "ovs-ofctl", "-O", "OpenFlow13", "meter-stats", "br-int")
		if used := strings.Count(out, "flow_count:") - strings.Count(out, "flow_count:0 "); used != n {
			return out
		}
		return ""
	})
}

// limits floods a pod and checks that the meter on a node drops most packets.
func limits(t *testing.T, from, to pod, family int, node string) {
	t.Helper()
	before := dropped(t, node)
	arrived := flood(t, from, to, family)
	if arrived > floodPackets/4 {
		t.Errorf("%s to %s: %d of %d packets arrived, want less than a quarter", from.Name, to.IPs[family], arrived,
			floodPackets)
	}
	if got := dropped(t, node) - before; got < floodPackets/2 {
		t.Errorf("%s to %s: the meters on %s dropped %d of %d packets, want more than half", from.Name, to.IPs[family], node,
			got, floodPackets)
	}
}

// passes floods a pod and checks that most packets arrive.
func passes(t *testing.T, from, to pod, family int) {
	t.Helper()
	if arrived := flood(t, from, to, family); arrived < floodPackets/2 {
		t.Errorf("%s to %s: %d of %d packets arrived, want more than half", from.Name, to.IPs[family], arrived, floodPackets)
	}
}

// flood sends packets to a pod and returns how many it received meanwhile.
func flood(t *testing.T, from, to pod, family int) int {
	t.Helper()
	before := received(t, to)
	must(t, "exec", from.Name, "--", "/bin/echo-server", "flood", hostPort(to.IPs[family], floodPort),
		strconv.Itoa(floodPackets), strconv.Itoa(floodSize))
	arrived := received(t, to) - before
	t.Logf("%s to %s: %d of %d packets arrived", from.Name, to.IPs[family], arrived, floodPackets)
	return arrived
}

func received(t *testing.T, p pod) int {
	t.Helper()
	return number(t, must(t, "exec", p.Name, "--", "cat", "/sys/class/net/eth0/statistics/rx_packets"))
}

// dropped returns how many packets the meters of a node have dropped.
func dropped(t *testing.T, node string) int {
	t.Helper()
	sum, band := 0, false
	for _, word := range strings.Fields(must(t, "node", node, "--", "ovs-ofctl", "-O", "OpenFlow13", "meter-stats",
		"br-int")) {
		switch n, found := strings.CutPrefix(word, "packet_count:"); {
		case word == "bands:":
			band = true
		case strings.HasPrefix(word, "meter:"):
			band = false
		case found && band:
			sum += number(t, n)
		}
	}
	return sum
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
