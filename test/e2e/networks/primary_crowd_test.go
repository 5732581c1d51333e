package networks

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

const (
	crowd     = 1000 // connections of a tenant to each kind of server
	crowdWait = "20s"
)

// crowdService is a Service of a tenant's pods, with a port of each protocol.
const crowdService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %s}
spec:
  selector: {app: web}
  ipFamilyPolicy: RequireDualStack
  ports: [{name: tcp, port: 80, targetPort: 8080}, {name: udp, port: 80, targetPort: 8080, protocol: UDP}]
---
`

// TestTwoTenantsLoseNoPacket has two tenants of the same ranges, whose pods have the same addresses, connect to the
// same ports: to a pod of another node, to a Service, and to the outside. A tenant's connections to one kind of server
// are all open at the same time. All are answered, each by the tenant's own pods. The neighbours are known: OVN drops
// what waits for too long for one.
func TestTwoTenantsLoseNoPacket(t *testing.T) {
	machines.Alone(t)
	c := machines.Up(t, sandbox.Options{Name: "crowd-test", Nodes: 2, Gateways: 1, DualStack: true})
	machines.Kubectl(t, c, "", "apply", "-f", crd)
	machines.Kubectl(t, c, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"network-attachment-definitions.k8s.cni.cncf.io")
	tenants := []string{"red", "gray"}
	var pods []string // their addresses
	for _, ns := range tenants {
		machines.Kubectl(t, c, fmt.Sprintf(primaryTenant, ns, layer2), "apply", "-f", "-")
		for i, n := range c.Nodes { // one after the other, so that both tenants' pods get the same addresses
			pod := fmt.Sprintf("%s-%d", ns, i+1)
			apply(t, c, probedPod(ns, pod, n.Spec.Name, "app: web"), ns, pod)
			pods = append(pods, fmt.Sprint(on(t, c, ns, pod, "ovn-udn1")))
		}
		machines.Kubectl(t, c, fmt.Sprintf(crowdService, ns), "apply", "-f", "-")
	}
	if !slices.Equal(pods[:2], pods[2:]) {
		t.Fatalf("the pods have %v, want the same addresses in both networks", pods)
	}
	for _, ns := range tenants {
		for _, to := range clusterIPs(t, c, ns, "web") {
			for _, protocol := range []string{"tcp", "udp"} {
				sameName(t, c, ns, ns+"-1", protocol, to.String(), ns+"-")
			}
		}
		for _, to := range outside() {
			sameName(t, c, ns, ns+"-1", "udp", to.String(), "outside ")
		}
	}
	var asking sync.WaitGroup
	for _, ns := range tenants {
		asking.Go(func() { askCrowd(t, c, ns) })
	}
	asking.Wait()
	for _, n := range c.Nodes {
		if got := machines.Run(t, n, "ovs-appctl", "coverage/read-counter", "datapath_drop_recirc_error"); got != "0" {
			t.Errorf("node %s: datapath_drop_recirc_error %s, want 0", n.Spec.Name, got)
		}
	}
}

// askCrowd has a tenant's first pod ask all its questions, those to one kind of server at the same time. Each question
// has a connection of its own, and all are open before the first is asked.
func askCrowd(t *testing.T, c *sandbox.Cluster, ns string) {
	var pod []netip.AddrPort
	for _, a := range on(t, c, ns, ns+"-2", "ovn-udn1") {
		pod = append(pod, netip.AddrPortFrom(a, 8080))
	}
	for what, s := range map[string]struct {
		at  []netip.AddrPort
		may []string
	}{
		"a pod of the other node": {pod, []string{ns + "-2 "}},
		"a Service":               {clusterIPs(t, c, ns, "web"), []string{ns + "-1 ", ns + "-2 "}},
		"the outside":             {outside(), []string{"outside "}},
	} {
		var questions []string
		for i := range crowd {
			questions = append(questions, []string{"tcp ", "udp "}[i%2]+s.at[i/2%len(s.at)].String())
		}
		cmd := c.Kubectl(t.Context(), "exec", "--stdin", "--namespace", ns, ns+"-1", "--", machines.EchoInPod, "crowd",
			crowdWait)
		cmd.Stdin = strings.NewReader(strings.Join(questions, "\n") + "\n")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("%s asks %s: %v: %s", ns, what, err, errs.String())
			continue
		}
		answers := strings.Split(strings.TrimSpace(out.String()), "\n")
		wrong := slices.DeleteFunc(slices.Clone(answers), func(a string) bool {
			return slices.ContainsFunc(s.may, func(name string) bool { return strings.HasPrefix(a, name) })
		})
		if len(answers) != crowd || len(wrong) > 0 {
			t.Errorf("%s asks %s: %d answers, want %d; %d are wrong, such as %q", ns, what, len(answers), crowd, len(wrong),
				wrong[:min(3, len(wrong))])
		}
	}
}

// outside is where the host outside answers.
func outside() []netip.AddrPort {
	return []netip.AddrPort{netip.MustParseAddrPort("203.0.113.10:8080"),
		netip.MustParseAddrPort("[2001:db8:30::a]:8080")}
}
