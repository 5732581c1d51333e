package names

import (
	"crypto/sha1"
	"strconv"

	"github.com/google/uuid"
)

// Kind is the kind of thing on whose behalf a Northbound row exists.
type Kind string

// The kinds of owners. A new feature adds a line here.
const (
	KindCluster   Kind = "Cluster" // the cluster as a whole: its router, join switch and shared groups
	KindZone      Kind = "Zone"    // nodes of one topology.kubernetes.io/zone, or those without: see ZoneOwner
	KindNode      Kind = "Node"
	KindGateway   Kind = "Gateway" // what makes a node, by whose name it goes, a gateway
	KindExit      Kind = "Exit"    // where pods leave a primary network on a node: see Network.Owner
	KindNamespace Kind = "Namespace"
	KindTenant    Kind = "Tenant"    // namespaces whose pods reach each other; cluster.GlobalTenant is what reaches all
	KindIsolation Kind = "Isolation" // the isolated pods of a node, by whose name it goes
	KindSelector  Kind = "Selector"  // the pods that a selector of policies selects; it goes by a hash
	KindPolicy    Kind = "NetworkPolicy"
	KindPod       Kind = "Pod"
	KindService   Kind = "Service"

	KindClusterPolicy Kind = "ClusterNetworkPolicy"
)

// Kinds lists every kind in the order in which a batch is translated: what
// others refer to comes first.
func Kinds() []Kind {
	return []Kind{KindCluster, KindZone, KindNode, KindGateway, KindExit, KindNamespace, KindTenant, KindIsolation,
		KindSelector, KindPolicy, KindClusterPolicy, KindPod, KindService}
}

// The external_ids keys of the ownership mark. Every row of ours, in a table
// that has external_ids, carries all three.
const (
	OwnerTypeKey = "k8s.ovn.org/owner-type"      // a Kind
	OwnerNameKey = "k8s.ovn.org/owner-name"      // "<namespace>/<name>", "<name>", or what Network.Owner makes of it
	RoleKey      = "k8s.ovn.org/role"            // which of the owner's rows this is
	SubnetsKey   = "k8s.ovn.org/cluster-subnets" // Logical_Router of the cluster: --cluster-subnets, if a command lacks it
	JoinKey      = "k8s.ovn.org/join-subnet"     // the same for --join-subnet
	ByHandKey    = "k8s.ovn.org/by-hand"         // Logical_Switch of a node set up by hand: what annotations would say
)

// KeyPrefix begins every external_ids key that belongs to this project. A key with
// it that is not wanted is removed; other keys are left to whoever set them.
const KeyPrefix = "k8s.ovn.org/"

// External_ids keys of the classic layout, which operators' scripts look for.
const (
	KeyClusterRouter = "k8s-cluster-router"  // Logical_Router: "yes" on the distributed router
	KeyConnectToJoin = "connect_to_join"     // Logical_Router_Port: "yes" on a port to the join switch
	KeyGatewayIP     = "gateway_ip"          // Logical_Switch: the node's .1 with its prefix length
	KeyGatewayIPv6   = "gateway_ip_v6"       // the same for IPv6 on a dual-stack switch
	KeyPhysicalIP    = "physical_ip"         // Logical_Router: the node's address, on its gateway router
	KeyPhysicalIPs   = "physical_ips"        // Logical_Router: the same of both families, comma-separated
	KeyPhysicalPort  = "gateway-physical-ip" // Logical_Router_Port: "yes" on a gateway router's outer port
	KeyPod           = "pod"                 // Logical_Switch_Port: "true" on a pod's port
	KeyNamespace     = "namespace"           // Logical_Switch_Port: the pod's namespace
)

// External_ids keys of the cluster router that record who may write what. No owner wants them: package ovsdb writes
// them, and a plan leaves them alone.
const (
	EpochKey  = KeyPrefix + "leader-epoch" // a number that every new leader raises before it writes
	LeaderKey = KeyPrefix + "leader"       // the identity of the master that raised it
	UIDKey    = KeyPrefix + "cluster-uid"  // the UID of the namespace kube-system of the cluster
	// ApprovalKey has the digest of the removal that an operator approved.
	ApprovalKey = KeyPrefix + "approved-removal"
)

// RecordKeys lists the external_ids keys with KeyPrefix that plans leave alone.
func RecordKeys() []string { return []string{EpochKey, LeaderKey, UIDKey, ApprovalKey} }

// ClassicKeys lists the external_ids keys without KeyPrefix that this project
// writes and therefore also removes.
func ClassicKeys() []string {
	return []string{
		KeyClusterRouter, KeyConnectToJoin, KeyGatewayIP, KeyGatewayIPv6,
		KeyPhysicalIP, KeyPhysicalIPs, KeyPhysicalPort, KeyPod, KeyNamespace,
	}
}

// rowSpace is the UUIDv5 name space of all rows (RFC 4122 section 4.3),
// 6f0c2f39-7f0e-5f6b-9d0a-2b9f3c1d7a54. It is a constant of the on-disk format:
// changing it would re-create every row.
const rowSpace = "\x6f\x0c\x2f\x39\x7f\x0e\x5f\x6b\x9d\x0a\x2b\x9f\x3c\x1d\x7a\x54"

// RowUUID derives the UUID of a row from what the row is for. uid is the
// Kubernetes UID of the owner (empty where there is none): an object that is
// deleted and made again under the same name gets new rows, never a row that
// ovn-northd is still forgetting.
func RowUUID(table string, kind Kind, name, role, uid string) string {
	return derived(table, string(kind), name, role, uid)
}

// derived is the UUIDv5 of parts with a zero byte between them. It is
// uuid.NewSHA1, which allocates a hash and a copy: every pod takes several.
func derived(parts ...string) string {
	var room [256]byte
	key := append(room[:0], rowSpace...)
	for i, p := range parts {
		if i > 0 {
			key = append(key, 0)
		}
		key = append(key, p...)
	}
	sum := sha1.Sum(key)
	u := uuid.UUID(sum[:16])
	u[6] = u[6]&0x0f | 0x50 // version 5
	u[8] = u[8]&0x3f | 0x80 // the variant of RFC 4122
	return u.String()
}

// IsRowUUID tells whether a UUID may come from RowUUID: it is of version 5.
// Those that ovsdb-server makes up are of version 4.
func IsRowUUID(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.Version() == 5
}

// StandIns is how many other UUIDs a row may have: see StandIn.
const StandIns = 7

// StandIn is the n-th UUID, from 1 to StandIns, to use for a row instead of
// the one that RowUUID derives, while that belongs to a row just deleted:
// ovn-northd 25.03 may crash when it sees a row go and come again under one
// UUID in the same moment.
func StandIn(rowUUID string, n int) string {
	return derived(rowUUID, strconv.Itoa(n))
}

// IsUUIDOf tells whether a row with this UUID is the row that rowUUID was derived for: under rowUUID itself or under
// one of its stand-ins.
func IsUUIDOf(rowUUID, uuid string) bool {
	if uuid == rowUUID {
		return true
	}
	for n := 1; n <= StandIns; n++ {
		if uuid == StandIn(rowUUID, n) {
			return true
		}
	}
	return false
}
