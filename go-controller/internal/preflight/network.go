package preflight

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func checkMTU(c Config, f Facts) doctor.Finding {
	if !c.Worker {
		return fine("not needed here")
	}
	if len(f.Underlay) == 0 {
		return unchecked("there is no default route, so --encap-ip must say which interface carries the tunnels")
	}
	var wrong faults
	var found []string
	least := config.LeastMTU(c.Node.ClusterSubnets)
	for _, u := range f.Underlay {
		if u.Place.Link == "" {
			wrong.add("ip address show  # and --encap-ip with one of these", "no interface has the tunnel address %s", u.Addr)
			continue
		}
		overhead := encap.Overhead(c.Node.EncapType, []netip.Addr{u.Addr})
		left, want := u.Place.MTU-overhead, cmp.Or(c.Node.MTU, least)
		if left >= want {
			found = append(found, u.Place.Link+" with "+u.Addr.String())
			continue
		}
		fix := fmt.Sprintf("ip link set %s mtu %d  # if the network carries that", u.Place.Link, want+overhead)
		if left >= least {
			fix += fmt.Sprintf("; else --mtu %d", left)
		}
		wrong.add(fix, "%s has an MTU of %d, which leaves %d for pods: want %d at least", u.Place.Link, u.Place.MTU, left,
			want)
	}
	return wrong.finding("%s", strings.Join(found, ", "))
}

// otherPlugins are interfaces of other network plugins, by the plugin. An interface whose name ends with "*" stands for
// all that begin like it.
func otherPlugins() map[string][]string {
	return map[string][]string{
		"Antrea":         {"antrea-gw0"},
		"Calico":         {"vxlan.calico", "vxlan-v6.calico", "cali*"},
		"Cilium":         {"cilium_*"},
		"flannel":        {"flannel.*", "flannel-*"},
		"kindnet":        {"kindnet*"},
		"Kube-OVN":       {"ovn0"},
		"kube-router":    {"kube-bridge", "kube-dummy-if"},
		"OVN-Kubernetes": {"ovn-k8s-mp*"},
		"the bridge CNI": {"cni0"},
		"Weave Net":      {"weave", "vethwe*"},
	}
}

// otherChains are the beginnings of the names of other network plugins' nftables chains.
func otherChains() []string {
	return []string{"ANTREA-", "CILIUM_", "FLANNEL-", "KUBE-ROUTER-", "WEAVE-", "cali-"}
}

func checkOtherNetwork(c Config, f Facts) doctor.Finding {
	var wrong faults
	plugins, chains := otherPlugins(), otherChains()
	flannel := f.Processes["flanneld"]
	if flannel {
		wrong.add("# move the cluster node by node, as docs/operate/migrate.md says", "flanneld runs")
		// Without these, running pods would be cut off.
		delete(plugins, "flannel")
		delete(plugins, "the bridge CNI")
		chains = slices.DeleteFunc(chains, func(begin string) bool { return begin == "FLANNEL-" })
	}
	for _, file := range f.ConfFiles {
		if flannel && strings.Contains(file, "flannel") || f.Multus && file == f.ConfFiles[0] {
			continue
		}
		if file < names.CNIConfFile { // runtimes take the first (libcni.ConfFiles)
			wrong.add("mv "+c.Node.CNIConfDir+"/"+file+" /root/", "%s/%s comes before %s: the runtime takes the first",
				c.Node.CNIConfDir, file, names.CNIConfFile)
		}
	}
	for _, plugin := range slices.Sorted(maps.Keys(plugins)) {
		for _, link := range slices.Sorted(maps.Keys(f.Links)) {
			if slices.ContainsFunc(plugins[plugin], func(pattern string) bool { return matches(pattern, link) }) {
				wrong.add("ip link delete "+link, "interface %s is of %s", link, plugin)
			}
		}
	}
	for _, begin := range chains {
		if i := slices.IndexFunc(f.Chains, func(ch nft.Chain) bool { return strings.HasPrefix(ch.Name, begin) }); i >= 0 {
			wrong.add("# remove that plugin from the cluster, then reboot the node: its rules are gone then",
				"nftables chain %s of table %s is of another network plugin", f.Chains[i].Name, f.Chains[i].Table)
		}
	}
	return wrong.finding("no traces of another network plugin")
}

func matches(pattern, name string) bool {
	begin, all := strings.CutSuffix(pattern, "*")
	return name == pattern || all && strings.HasPrefix(name, begin)
}

func checkKubeProxy(_ Config, f Facts) doctor.Finding {
	const (
		program = "kubectl -n kube-system delete daemonset/kube-proxy configmap/kube-proxy"
		// kubeadm has that program in an image alone.
		rules = "kube-proxy --cleanup  # or reboot the node; without that program see docs/operate/kubeadm.md"
	)
	var wrong faults
	if f.Processes["kube-proxy"] {
		wrong.add(program, "kube-proxy runs")
	}
	if f.Links["kube-ipvs0"] {
		wrong.add(rules, "interface kube-ipvs0 is of kube-proxy")
	}
	for _, ch := range f.Chains {
		if ch.Table == "kube-proxy" || ch.Name == "KUBE-SERVICES" {
			wrong.add(rules, "nftables chain %s of table %s is of kube-proxy", ch.Name, ch.Table)
			break
		}
	}
	return wrong.finding("no kube-proxy")
}

func checkFirewall(c Config, f Facts) doctor.Finding {
	if !c.Worker {
		return fine("not needed here")
	}
	var wrong faults
	firewalld := slices.ContainsFunc(f.Chains, func(ch nft.Chain) bool { return ch.Table == "firewalld" })
	if f.Processes["firewalld"] || firewalld {
		wrong.add("systemctl disable --now firewalld", "firewalld runs: it drops what it does not know")
	}
	for _, ch := range f.Chains {
		if !ch.Forwards || !ch.Drops {
			continue
		}
		fix := "nft list table " + ch.Table + "  # its owner must accept forwarded packets"
		if ch.Table == "filter" && ch.Name == "FORWARD" { // of iptables; Docker sets it
			if f.UFW.Enabled && f.UFW.DropsForwarded { // which check ufw reports
				continue
			}
			fix = "iptables -P FORWARD ACCEPT"
			if ch.IPv6 {
				fix = "ip6tables -P FORWARD ACCEPT"
			}
			fix += "  # and again after each boot; Docker sets DROP whenever it starts"
		}
		wrong.add(fix, "chain %s of table %s drops forwarded packets", ch.Name, ch.Table)
	}
	return wrong.finding("nothing drops all forwarded packets")
}
