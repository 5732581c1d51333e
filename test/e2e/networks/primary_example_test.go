package networks

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

const primaryExample = "../../../docs/features/primary-networks.yaml"

// tryPrimaryExample applies the documentation's example: two namespaces with the same ranges, and a pod in each. Each
// pod has an address of its own network, and reaches the outside and DNS. Pods of the cluster's own network reach
// neither by eth0.
func tryPrimaryExample(t *testing.T, c *sandbox.Cluster) {
	text, err := os.ReadFile(primaryExample)
	if err != nil {
		t.Fatal(err)
	}
	machines.Kubectl(t, c, string(text), "apply", "-f", "-")
	ranges := []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("fd77::/48")}
	for _, ns := range []string{"red", "green"} {
		machines.Kubectl(t, c, "", "wait", "-n", ns, "--for=condition=Ready", "--timeout=60s", "pod", "web")
		for _, a := range on(t, c, ns, "web", "ovn-udn1") {
			if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) }) {
				t.Errorf("%s/web has %s on ovn-udn1, want an address in %v", ns, a, ranges)
			}
		}
		for _, to := range []string{"203.0.113.10:8080", "[2001:db8:30::a]:8080"} {
			sameName(t, c, ns, "web", "tcp", to, "outside ")
		}
		sameName(t, c, ns, "web", "udp", "10.96.0.10:53", "dns-1 ", "dns-2 ")
		noAnswer(t, c, "web ", at(on(t, c, ns, "web", "eth0"), 8080), inPod("kube-system", "dns-1"))
	}
	machines.InSync(t, c)
}
