package node

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/image"
	"github.com/northbound-net/northbound/test/sandbox/member"
)

// containerdConfig is containerd's configuration file, version 2
// (containerd-config.toml(5)).
func containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%s"
    conf_dir = "/etc/cni/net.d"
`, image.Pause, member.CNIBinDir)
}

// kubeletConfig is the kubelet's configuration file (Kubernetes API docs, kubelet.config.k8s.io/v1beta1
// KubeletConfiguration). It uses no service manager, and no limits that several nodes on one machine would reach.
func (n *Node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
port: 10250
healthzBindAddress: 127.0.0.1
authentication:
  anonymous: {enabled: true}
  webhook: {enabled: false}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
cgroupRoot: /%[1]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
imageServiceEndpoint: unix:///run/containerd/containerd.sock
registerNode: true
clusterDomain: cluster.local
clusterDNS: [%[2]s]
resolvConf: ""
hairpinMode: none
makeIPTablesUtilChains: false
evictionHard: {}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: true
volumePluginDir: /var/lib/kubelet/volume-plugins
podLogsDir: /var/log/pods
syncFrequency: 2s
nodeStatusUpdateFrequency: 5s
shutdownGracePeriod: 0s
memorySwap: {}
maxPods: 110
registryPullQPS: 0
serializeImagePulls: false
registerWithTaints: [%[3]s]
`, n.Config.Cgroup, list(n.Config.ClusterDNS), n.taints())
}

// taints are those that the Node is registered with, for an inline YAML list.
func (n *Node) taints() string {
	if n.Config.Taint == "" {
		return ""
	}
	return fmt.Sprintf("{key: %[1]s, effect: NoSchedule}, {key: %[1]s, effect: NoExecute}", n.Config.Taint)
}

// list returns addresses as an inline YAML list.
func list(addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, strconv.Quote(a.String()))
	}
	return strings.Join(all, ", ")
}
