package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
)

// The beginnings of chains of kube-proxy, and of the plugin portmap, which serves pods' hostPorts.
const (
	kubeProxyChains = "KUBE-"
	portmapChains   = "CNI-"
)

// checkLegacy looks at the rules of the old iptables. They act on packets beside those of nftables. What removes rules
// of nftables does not find them.
func checkLegacy(c Config, f Facts) doctor.Finding {
	var wrong faults
	var others []string
	for _, t := range f.Legacy {
		program := "iptables-legacy"
		if t.IPv6 {
			program = "ip6tables-legacy"
		}
		remove := func(begin, when string) string {
			return fmt.Sprintf("%[1]s-save | grep -v -e %[2]s | %[1]s-restore%[3]s", program, begin, when)
		}
		if t.DropsForwarded && c.Worker && (!f.UFW.Enabled || !f.UFW.DropsForwarded) {
			wrong.add(program+" -P FORWARD ACCEPT  # and again after each boot", "table %s of %s drops forwarded packets",
				t.Name, program)
		}
		if slices.Contains(t.Chains, "KUBE-SERVICES") {
			wrong.add(remove(kubeProxyChains, "  # kube-proxy --cleanup may not find them"),
				"table %s of %s has rules of kube-proxy: they catch packets to services", t.Name, program)
		}
		if hasChain(t.Chains, "CNI-HOSTPORT-") {
			wrong.add(remove(portmapChains, "  # when the pods of the old network are gone"),
				"table %s of %s has rules of the plugin portmap: they catch connections to pods' hostPorts", t.Name, program)
		}
		for _, begin := range otherChains() {
			if hasChain(t.Chains, begin) {
				wrong.add(remove(begin, ""), "table %s of %s has chains %s*, which are of another network plugin", t.Name, program,
					begin)
			}
		}
		if t.Rules > 0 {
			others = append(others, fmt.Sprintf("%d in table %s of %s", t.Rules, t.Name, program))
		}
	}
	if len(others) == 0 {
		return wrong.finding("the old iptables has no rules")
	}
	return wrong.finding("no rules of kube-proxy or network plugins among these of the old iptables: %s",
		strings.Join(others, ", "))
}

func hasChain(chains []string, begin string) bool {
	return slices.ContainsFunc(chains, func(chain string) bool { return strings.HasPrefix(chain, begin) })
}
