package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// elsewherePort is the service's node port.
const elsewherePort = 30040

// elsewhere is a service without a selector. Its endpoint is the host outside.
func elsewhere() string {
	docs := []string{fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: elsewhere}
spec:
  type: NodePort
  ipFamilyPolicy: RequireDualStack
  ports:
  - {name: t, port: 80, nodePort: %[1]d}
  - {name: u, protocol: UDP, port: 80, nodePort: %[1]d}
  - {name: s, protocol: SCTP, port: 80, nodePort: %[1]d}
`, elsewherePort)}
	for i, o := range families().Outside() {
		docs = append(docs, fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: elsewhere-%[1]s, labels: {kubernetes.io/service-name: elsewhere}}
addressType: %[2]s
ports: [{name: t, port: 8080}, {name: u, protocol: UDP, port: 8080}, {name: s, protocol: SCTP, port: 8080}]
endpoints: [{addresses: ["%[3]s"]}]
`, []string{"v4", "v6"}[i], []string{"IPv4", "IPv6"}[i], o.Addr()))
	}
	return strings.Join(docs, "---")
}

// endpointElsewhere checks that pods, nodes and the host outside reach a service whose endpoint is outside the cluster.
// The endpoint sees the gateway's address, whoever the client is.
func (b bed) endpointElsewhere() {
	b.t.Helper()
	machines.Kubectl(b.t, b.Cluster, elsewhere(), "apply", "-f", "-")
	virtual := machines.Addresses(b.t, b.Cluster, "service", "elsewhere", "{.spec.clusterIPs[*]}")
	type asking struct {
		who string
		to  netip.AddrPort
		ask func(ctx context.Context, protocol string, to netip.AddrPort) string
	}
	var all []asking
	for _, ip := range virtual {
		to := netip.AddrPortFrom(ip, 80)
		for _, pod := range []string{"a", "b"} {
			all = append(all, asking{"pod " + pod, to, func(ctx context.Context, protocol string, to netip.AddrPort) string {
				return machines.AskIn(ctx, b.Cluster, pod, protocol, to)
			}})
		}
		for _, n := range b.Nodes {
			all = append(all, asking{n.Spec.Name, to, func(ctx context.Context, protocol string, to netip.AddrPort) string {
				return machines.AskOn(ctx, n.Member, protocol, to)
			}})
		}
	}
	for _, n := range b.Nodes {
		for _, p := range addrs(n) {
			all = append(all, asking{"outside", netip.AddrPortFrom(p.Addr(), elsewherePort), func(ctx context.Context,
				protocol string, to netip.AddrPort) string {
				return machines.AskOn(ctx, b.Outside, protocol, to)
			}})
		}
	}
	for _, a := range all {
		from := addrs(b.Nodes[0])[0].Addr()
		if a.to.Addr().Is6() {
			from = addrs(b.Nodes[0])[1].Addr()
		}
		for _, protocol := range machines.Protocols(b.t) {
			machines.Eventually(b.t, fmt.Sprintf("%s asks %s over %s", a.who, a.to, protocol), func(ctx context.Context) string {
				answer := a.ask(ctx, protocol, a.to)
				who, where, _ := strings.Cut(answer, " ")
				if seen, err := netip.ParseAddrPort(where); who != "outside" || err != nil || seen.Addr().Unmap() != from {
					return fmt.Sprintf("%q, want outside, which sees %s", answer, from)
				}
				return ""
			})
		}
	}
}
