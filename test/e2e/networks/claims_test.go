package networks

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

const claimKind = "../../../dist/kubernetes/ipamclaims.yaml"

// disks is a network of the tenant green beside its primary one, in which claims keep addresses, too.
const disks = `
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: {name: disks, namespace: green}
spec:
  topology: Layer2
  layer2: {role: Secondary, subnets: ["10.88.0.0/24", "fd88::/64"], ipam: {lifecycle: Persistent}}
---
`

// claims is two IPAMClaims of the tenant green with a prefix, in its primary network and in disks.
const claims = `
apiVersion: k8s.cni.cncf.io/v1alpha1
kind: IPAMClaim
metadata: {name: %[1]s.own, namespace: green}
spec: {network: green_own, interface: ovn-udn1}
---
apiVersion: k8s.cni.cncf.io/v1alpha1
kind: IPAMClaim
metadata: {name: %[1]s.disks, namespace: green}
spec: {network: disks, interface: net1}
---
`

// wished is an IPAMClaim that asks for an address of another.
const wished = `
apiVersion: k8s.cni.cncf.io/v1alpha1
kind: IPAMClaim
metadata: {name: wished, namespace: green}
spec: {network: disks, interface: net1, ipRequests: ["%s/24"]}
---
`

// claimant is a pod that refers to both claims of a prefix.
func claimant(prefix, name, node, labels string) string {
	return strings.Replace(probedPod("green", name, node, labels), "labels:", fmt.Sprintf(
		`annotations: {k8s.ovn.org/primary-udn-ipamclaim: %[1]s.own, k8s.v1.cni.cncf.io/networks: '[{"name": "disks",`+
			` "ipam-claim-reference": "%[1]s.disks"}]'}, labels:`, prefix), 1)
}

// keeper is a pod that refers to the claims of the prefix keeper.
func keeper(name, node string) string { return claimant("keeper", name, node, "app: kept") }

// tryClaims has a pod deleted and made anew on another node, with a new master in between. It has the addresses that it
// had, in its primary network and on another interface, and answers there.
func tryClaims(t *testing.T, c *sandbox.Cluster) {
	pods := keeper("keeper", "n1") + podWith("green", "peer", "n1", "disks")
	apply(t, c, disks+fmt.Sprintf(claims, "keeper")+pods, "green", "keeper", "peer")
	links := []string{"ovn-udn1", "net1"}
	before := map[string][]netip.Addr{}
	for i, claim := range []string{"keeper.own", "keeper.disks"} {
		before[links[i]] = on(t, c, "green", "keeper", links[i])
		status := machines.Kubectl(t, c, "", "get", "ipamclaim", "-n", "green", claim, "-o", "jsonpath={.status.ips} "+
			"{.status.ownerPod.name} {.status.conditions[0].type}")
		for _, want := range []string{before[links[i]][0].String() + "/", before[links[i]][1].String() + "/",
			" keeper IPsAllocated"} {
			if !strings.Contains(status, want) {
				t.Errorf("IPAMClaim %s has %s, want %s", claim, status, want)
			}
		}
	}
	machines.Kubectl(t, c, "", "delete", "pod", "-n", "green", "keeper", "--timeout=60s")
	if err := c.Restart(t.Context(), "master", unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, c)
	apply(t, c, podWith("green", "taker", "n1", "disks"), "green", "taker")
	apply(t, c, keeper("keeper", "n2"), "green", "keeper")
	for i, from := range []string{"green-1", "peer"} {
		now, taken := on(t, c, "green", "keeper", links[i]), on(t, c, "green", "taker", links[i])
		if fmt.Sprint(now) != fmt.Sprint(before[links[i]]) || now[0] == taken[0] || now[1] == taken[1] {
			t.Errorf("keeper had %v on %s, and has %v; another pod has %v", before[links[i]], links[i], now, taken)
		}
		answers(t, c, "green", from, "keeper", now)
	}
	machines.Kubectl(t, c, keeper("second", "n1"), "apply", "-f", "-")
	waitsIn(t, c, "green", "second", "in use by Pod green/keeper")
	loser := podWith("green", "loser", "n1", `[{"name": "disks", "ipam-claim-reference": "wished"}]`)
	machines.Kubectl(t, c, fmt.Sprintf(wished, before["net1"][0])+loser, "apply", "-f", "-")
	waitsIn(t, c, "green", "loser", "is already the address of IPAMClaim green/keeper.disks")
	machines.Kubectl(t, c, "", "wait", "-n", "green", "ipamclaim/wished", "--timeout=20s", "--for",
		`jsonpath={.status.conditions[?(@.type=="IPsAllocated")].reason}=IPAddressConflict`)
	for claim, want := range map[string]string{"wished": "IPAddressConflict", "keeper.disks": "SuccessfulAllocation"} {
		if row := machines.Kubectl(t, c, "", "get", "ipamclaim", "-n", "green", claim); !strings.Contains(row, want) {
			t.Errorf("kubectl get ipamclaim prints %q, want the reason %s", row, want)
		}
	}
}
