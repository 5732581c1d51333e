package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Pods are created in waves on all nodes. Some of each wave are force-deleted as soon as they have an address,
// preferably while their sandboxes are being made. The others are deleted when all of them run, while the next wave is
// created.
const (
	waves       = 3
	wavePods    = 24
	waveForced  = 6
	churnImage  = "localhost/pause:1"
	networksKey = "k8s.ovn.org/pod-networks"
)

// churnPod is a pod with its last known properties.
type churnPod struct {
	name, node, phase string
	networks          string // the annotation
}

// TestChurn checks that pods which are created and deleted leave nothing behind: on the nodes, in the databases, and
// among the allocated addresses.
func TestChurn(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	eventually(t, "the pods of the tests before", func() string { return kubectl(t, "get", "pods", "-o", "name") })
	eventually(t, "their ports", func() string { return portsBut(t, "") })
	eventually(t, "their ports in the Southbound database", func() string {
		return must(t, "sbctl", "--bare", "--columns=logical_port", "find", "Port_Binding", "external_ids:pod=true")
	})
	for _, n := range nodes {
		eventually(t, "what the tests before have left on "+n, func() string { return sandboxes(t, n) })
	}
	before := map[string]string{}
	for _, n := range nodes {
		before[n] = inventory(t, n)
	}
	rows := databases(t)

	var forced, ran []churnPod
	for w := range waves {
		f, r := wave(t, w, nodes)
		forced, ran = append(forced, f...), append(ran, r...)
	}
	if len(forced) != waves*waveForced || len(forced)+len(ran) != waves*wavePods {
		t.Fatalf("%d pods were deleted by force and %d ran, want %d in all", len(forced), len(ran), waves*wavePods)
	}
	eventually(t, "deleted pods", func() string { return kubectl(t, "get", "pods", "-l", "app=churn", "-o", "name") })
	for _, n := range nodes {
		same(t, n, before[n], func() string { return inventory(t, n) })
	}
	same(t, "the databases", rows, func() string { return databases(t) })
	begun(t, nodes, forced)
	claim(t, nodes, forced, ran)
}

// wave creates and deletes pods. The last deletions are still in progress when it returns.
func wave(t *testing.T, w int, nodes []string) (forced, ran []churnPod) {
	t.Helper()
	label := fmt.Sprintf("wave=w%d", w)
	var manifest strings.Builder
	for i := range wavePods {
		manifest.WriteString(pausePod(fmt.Sprintf("churn-%d-%d", w, i), nodes[i%len(nodes)],
			fmt.Sprintf("{app: churn, wave: w%d}", w), ""))
	}
	apply(t, manifest.String())
	eventually(t, fmt.Sprintf("%d pods of %s that have addresses", waveForced, label), func() string {
		forced = slices.DeleteFunc(churnPods(t, label), func(p churnPod) bool { return p.networks == "" })
		if len(forced) < waveForced {
			return fmt.Sprintf("%d have", len(forced))
		}
		return ""
	})
	// Pods whose sandboxes are being made come first: there may be few of them.
	slices.SortStableFunc(forced, func(a, b churnPod) int { return cmp.Compare(a.phase, b.phase) }) // Pending, Running
	forced = forced[:waveForced]
	kubectl(t, append([]string{"delete", "pod", "--force", "--grace-period=0", "--wait=false"}, churnNames(forced)...)...)
	eventually(t, fmt.Sprintf("the other pods of %s running", label), func() string {
		ran = slices.DeleteFunc(churnPods(t, label), func(p churnPod) bool {
			return p.phase != "Running" || slices.Contains(churnNames(forced), p.name)
		})
		if len(ran) < wavePods-waveForced {
			return fmt.Sprintf("%d of %d are", len(ran), wavePods-waveForced)
		}
		return ""
	})
	kubectl(t, "delete", "pod", "-l", label, "--wait=false")
	return forced, ran
}

// pausePod is a pod that only waits.
func pausePod(name, node, labels, annotations string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: %s, annotations: {%s}}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers: [{name: pause, image: "%s", imagePullPolicy: IfNotPresent}]
---
`, name, labels, annotations, node, churnImage)
}

func churnPods(t *testing.T, label string) []churnPod {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
			Spec   struct{ NodeName string }
			Status struct{ Phase string }
		}
	}
	if err := json.Unmarshal([]byte(kubectl(t, "get", "pods", "-l", label, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	var out []churnPod
	for _, i := range list.Items {
		out = append(out, churnPod{i.Metadata.Name, i.Spec.NodeName, i.Status.Phase, i.Metadata.Annotations[networksKey]})
	}
	return out
}

func churnNames(ps []churnPod) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.name)
	}
	return out
}

// sandboxes lists the Open vSwitch ports of containers.
func sandboxes(t *testing.T, node string) string {
	t.Helper()
	return must(t, "node", node, "--", "ovs-vsctl", "--bare", "--columns=name", "find", "Interface",
		`external_ids:sandbox!=""`)
}

// inventory lists everything that a pod's network may leave on a node: links, Open vSwitch interfaces, network
// namespaces, and the runtime's record of CNI results.
func inventory(t *testing.T, node string) string {
	t.Helper()
	out := must(t, "node", node, "--", "/bin/sh", "-c", `
ip -o link show | sed 's/^[0-9]*: \([^:@]*\).*/link \1/'
ovs-vsctl --bare --columns=name list Interface | sed '/^$/d; s/^/interface /'
ls /run/netns | sed 's/^/netns /'
ls /var/lib/cni/results 2>/dev/null | sed 's/^/result /'`)
	lines := strings.Split(out, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// databases lists the rows of pods in both OVN databases.
func databases(t *testing.T) string {
	t.Helper()
	lines := slices.Concat(
		strings.Fields(nbctl(t, "--bare", "--columns=name", "list", "Logical_Switch_Port")),
		strings.Fields(nbctl(t, "--bare", "--columns=addresses", "find", "Address_Set",
			`external_ids:k8s.ovn.org/owner-name=default`)),
		strings.Fields(must(t, "sbctl", "--bare", "--columns=logical_port", "list", "Port_Binding")))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// same waits until something is as it was before.
func same(t *testing.T, what, before string, now func() string) {
	t.Helper()
	eventually(t, what+" as before", func() string {
		now := strings.Split(now(), "\n")
		was := strings.Split(before, "\n")
		left := slices.DeleteFunc(slices.Clone(now), func(l string) bool { return slices.Contains(was, l) })
		lost := slices.DeleteFunc(slices.Clone(was), func(l string) bool { return slices.Contains(now, l) })
		if slices.Equal(now, was) {
			return ""
		}
		return fmt.Sprintf("%d lines, before %d: left over %q, lost %q", len(now), len(was), left, lost)
	})
}

// begun checks that some pods were force-deleted while their sandboxes were being made: the agents got an ADD for at
// least one of them. No ADD waited until its timeout.
func begun(t *testing.T, nodes []string, forced []churnPod) {
	t.Helper()
	n := 0
	for _, node := range nodes {
		for line := range strings.Lines(must(t, "logs", node+"/ovnkube-node")) {
			if strings.Contains(line, "command=ADD") && slices.ContainsFunc(forced, func(p churnPod) bool {
				return strings.Contains(line, "K8S_POD_NAME="+p.name+";")
			}) {
				n++
			}
			if strings.Contains(line, "watch has not seen pod") {
				t.Errorf("%s: a pod that was deleted was waited for: %s", node, line)
			}
		}
	}
	pending := len(slices.DeleteFunc(slices.Clone(forced), func(p churnPod) bool { return p.phase != "Pending" }))
	t.Logf("%d pods were deleted by force, %d of them while they were being made, CNI ADD was asked for %d of them",
		len(forced), pending, n)
	if pending == 0 {
		t.Error("all pods that were deleted by force were running")
	}
	if n == 0 {
		t.Error("no pod that was deleted by force had come as far as CNI ADD")
	}
}

// claim checks that addresses are free again: on each node, new pods request the addresses of a force-deleted pod and
// of a pod that ran, and get them.
func claim(t *testing.T, nodes []string, groups ...[]churnPod) {
	t.Helper()
	var manifest strings.Builder
	want := map[string]string{}
	for _, node := range nodes {
		for g, group := range groups {
			i := slices.IndexFunc(group, func(p churnPod) bool { return p.node == node })
			if i < 0 {
				t.Fatalf("no pod of %v was on %s", churnNames(group), node)
			}
			name := fmt.Sprintf("claim-%s-%d", node, g)
			want[name] = group[i].networks
			manifest.WriteString(pausePod(name, node, "{app: claim}", fmt.Sprintf("%s: '%s'", networksKey, group[i].networks)))
		}
	}
	apply(t, manifest.String())
	eventually(t, "pods with the addresses of those deleted", func() string {
		for _, p := range churnPods(t, "app=claim") {
			if p.networks != want[p.name] {
				t.Fatalf("pod %s asked for %s and has %s", p.name, want[p.name], p.networks)
			}
			if p.phase != "Running" {
				return fmt.Sprintf("%s is %s", p.name, p.phase)
			}
		}
		return ""
	})
}
