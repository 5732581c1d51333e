package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Kubernetes says how to reach the API server: with a kubeconfig file; or by URL, CA and token; or, if all are empty,
// with the pod's service account.
type Kubernetes struct {
	Kubeconfig string // path
	APIServer  string // URL; without a scheme, http
	CACert     string // path of a PEM file
	Token      string // bearer token
	ServerFrom string // path of a kubeconfig that has only the server's address, for a pod's service account
}

// OVSDB says how to reach an OVSDB server (ovsdb(7), "Connection Methods").
type OVSDB struct {
	Addresses []string // unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT; several for a Raft cluster
	Keys      Keys
}

// Keys are the PEM files of a connection to an ssl: address, which needs all three.
type Keys struct {
	PrivKey string
	Cert    string
	CACert  string
}

// validate reports the files that are missing, unless none is given and none is needed. db ("nb", "sb") is the
// beginning of the flags' names in errors.
func (k Keys) validate(db string, needed bool) error {
	if k == (Keys{}) && !needed {
		return nil
	}
	var errs []error
	for _, f := range []struct{ name, file string }{{"privkey", k.PrivKey}, {"cert", k.Cert}, {"cacert", k.CACert}} {
		if f.file == "" {
			errs = append(errs, fmt.Errorf("--%s-%s: an ssl: address needs it", db, f.name))
		}
	}
	return errors.Join(errs...)
}

// RefuseTCP is the error that some addresses of a database are tcp:, nil when none is. The server behind such an
// address believes whoever connects. where says what gives the addresses.
func RefuseTCP(where string, addresses []string) error {
	tcp := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !strings.HasPrefix(a, "tcp:") })
	if len(tcp) == 0 {
		return nil
	}
	return fmt.Errorf("%s %s: whoever reaches that port may change the network: want ssl:HOST:PORT or unix:/PATH; "+
		"a daemon takes tcp: with --insecure-databases", where, strings.Join(tcp, ","))
}

// ClusterSubnet is a range from which nodes get their subnets.
type ClusterSubnet struct {
	CIDR       netip.Prefix
	NodeLength int // prefix length of a node's subnet
}

// String is the form that ParseClusterSubnets reads.
func (c ClusterSubnet) String() string { return c.CIDR.String() + "/" + strconv.Itoa(c.NodeLength) }

// Cluster has the settings that shape the logical network. The master and the nodes must agree on them.
type Cluster struct {
	Subnets      []ClusterSubnet // any number per family; with both families, the cluster is dual-stack
	ServiceCIDRs []netip.Prefix
	JoinSubnets  []netip.Prefix // at most one per family
	RouterName   string         // name of the cluster router
	RouterNamed  bool           // the operator gave RouterName; otherwise an existing cluster router keeps its name
	Services     Services
	Policies     Policies
	Claims       Claims
	Multitenant  bool // pods of different tenants don't reach each other; only the master needs it
	ACLLogRate   int  // lines a second that an ACL may log on a node; 0 for no limit
	// MaxPodConnections is how many connections may be tracked for an interface of a pod at a time; 0 for no limit. Only
	// the master needs it.
	MaxPodConnections int
	Tunnels           Tunnels
	// PhysicalNetworks is which networks outside pods may be joined to. Only the master needs it.
	PhysicalNetworks []PhysicalNetwork
}

// Claims says what nodes may claim beyond what Kubernetes knows to be theirs. Only the master needs it.
type Claims struct {
	GatewayCIDRs []netip.Prefix // outside addresses that gateways may have although no Node reports them
	PinCIDRs     []netip.Prefix // pods on any node that a gateway may name as pinned to it
	Unchecked    bool           // every claim holds: a command on the node itself, whose user may write the database
}

// ListsGateway is true for an outside address that the operator lists for gateways.
func (c Claims) ListsGateway(a netip.Addr) bool {
	return slices.ContainsFunc(c.GatewayCIDRs, func(p netip.Prefix) bool { return p.Contains(a) })
}

// The longest prefix lengths of node subnets. A node needs addresses for .1, .2 and its pods.
const (
	maxNodeLengthV4 = 29
	maxNodeLengthV6 = 120
)

// ParseClusterSubnets reads a list such as "10.128.0.0/14/23,fd01::/48/64": CIDRs, each with the prefix length of a
// node's subnet. The default lengths are /24 for IPv4 and /64 for IPv6.
func ParseClusterSubnets(s string) ([]ClusterSubnet, error) {
	var out []ClusterSubnet
	for _, item := range strings.Split(s, ",") {
		c, err := parseClusterSubnet(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("parsing cluster subnet %q: %w", item, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// SubnetList is the form that ParseClusterSubnets reads.
func SubnetList(list []ClusterSubnet) string { return joined(list) }

// PrefixList is the form that ParsePrefixes reads.
func PrefixList(list []netip.Prefix) string { return joined(list) }

func joined[T fmt.Stringer](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return strings.Join(out, ",")
}

func parseClusterSubnet(item string) (ClusterSubnet, error) {
	parts := strings.Split(item, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return ClusterSubnet{}, errors.New("want CIDR or CIDR/NODE-LENGTH such as 10.128.0.0/14/23")
	}
	p, err := netip.ParsePrefix(parts[0] + "/" + parts[1])
	if err != nil {
		return ClusterSubnet{}, errors.New("want CIDR or CIDR/NODE-LENGTH such as 10.128.0.0/14/23")
	}
	if err := checkRange(p); err != nil {
		return ClusterSubnet{}, err
	}
	c := ClusterSubnet{CIDR: p, NodeLength: 24}
	longest := maxNodeLengthV4
	if p.Addr().Is6() {
		c.NodeLength, longest = 64, maxNodeLengthV6
	}
	if len(parts) == 3 {
		if c.NodeLength, err = strconv.Atoi(parts[2]); err != nil {
			return ClusterSubnet{}, fmt.Errorf("node length %q is not a number", parts[2])
		}
	}
	if c.NodeLength < p.Bits() || c.NodeLength > longest {
		return ClusterSubnet{}, fmt.Errorf("node length /%d: want between /%d (the range's own) and /%d",
			c.NodeLength, p.Bits(), longest)
	}
	return c, nil
}

// parseList parses a comma-separated list. Empty items are ignored, so that an empty string is an empty list. what
// names the setting in errors.
func parseList[T any](what, s string, parse func(item string) (T, error)) ([]T, error) {
	var out []T
	for _, item := range strings.Split(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		v, err := parse(item)
		if err != nil {
			return nil, fmt.Errorf("parsing %s %q: %w", what, item, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// ParsePrefixes reads a comma-separated list of CIDRs. what names the setting in errors.
func ParsePrefixes(what, s string) ([]netip.Prefix, error) {
	return parseList(what, s, func(item string) (netip.Prefix, error) {
		p, err := netip.ParsePrefix(item)
		if err != nil {
			return p, errors.New("want a CIDR such as 10.96.0.0/16")
		}
		return p, checkRange(p)
	})
}

func checkRange(p netip.Prefix) error {
	if p.Addr().Is4In6() {
		return errors.New("an IPv4-mapped IPv6 range, want plain IPv4")
	}
	if p != p.Masked() {
		return fmt.Errorf("host bits are set, want %s", p.Masked())
	}
	return nil
}

// ParseInterfaceAddrs reads a comma-separated list of addresses with the prefix lengths of their networks, such as
// 172.17.42.31/16. what names the setting in errors.
func ParseInterfaceAddrs(what, s string) ([]netip.Prefix, error) {
	return parseList(what, s, func(item string) (netip.Prefix, error) {
		p, err := netip.ParsePrefix(item)
		if err != nil || p.Addr().Is4In6() {
			return p, errors.New("want an address with a prefix length such as 172.17.42.31/16")
		}
		return p, nil
	})
}

// HasIPv4 reports whether pods get IPv4 addresses.
func (c Cluster) HasIPv4() bool { return c.has(true) }

// HasIPv6 reports whether pods get IPv6 addresses.
func (c Cluster) HasIPv6() bool { return c.has(false) }

// Families lists the address families of pods.
func (c Cluster) Families() (out []names.Family) {
	if c.HasIPv4() {
		out = append(out, names.IPv4)
	}
	if c.HasIPv6() {
		out = append(out, names.IPv6)
	}
	return out
}

func (c Cluster) has(v4 bool) bool {
	return slices.ContainsFunc(c.Subnets, func(s ClusterSubnet) bool { return s.CIDR.Addr().Is4() == v4 })
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (c Cluster) Validate() error {
	var errs []error
	if len(c.Subnets) == 0 {
		errs = append(errs, errors.New("--cluster-subnets: at least one is needed, such as 10.128.0.0/14/23"))
	}
	type named struct {
		flag string
		p    netip.Prefix
	}
	var all []named
	for _, s := range c.Subnets {
		all = append(all, named{"--cluster-subnets", s.CIDR})
	}
	for _, p := range c.ServiceCIDRs {
		all = append(all, named{"--k8s-service-cidrs", p})
	}
	for _, p := range c.JoinSubnets {
		all = append(all, named{"--join-subnet", p})
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.p.Overlaps(b.p) {
				errs = append(errs, fmt.Errorf("%s %s overlaps %s %s: they must be disjoint", a.flag, a.p, b.flag, b.p))
			}
		}
	}
	errs = append(append(errs, c.validateJoin()...), c.Services.Validate(), c.Policies.Validate())
	if c.ACLLogRate < 0 {
		errs = append(errs, fmt.Errorf("--acl-log-rate %d: want a number such as 20, or 0 for no limit", c.ACLLogRate))
	}
	if c.MaxPodConnections < 0 || c.MaxPodConnections > math.MaxUint32 {
		errs = append(errs, fmt.Errorf("--max-pod-connections %d: want a number such as 20000, at most %d, or 0 for no limit",
			c.MaxPodConnections, uint32(math.MaxUint32)))
	}
	for _, p := range c.Claims.PinCIDRs {
		if !slices.ContainsFunc(c.Subnets, func(s ClusterSubnet) bool { return s.CIDR.Overlaps(p) }) {
			errs = append(errs, fmt.Errorf("--gateway-pin-cidrs %s: no pod has an address there: want ranges of "+
				"--cluster-subnets %s", p, SubnetList(c.Subnets)))
		}
	}
	errs = append(errs, c.Tunnels.validate(c.Subnets))
	if c.RouterName == "" {
		errs = append(errs, errors.New("--router-name: the cluster router needs a name"))
	}
	return errors.Join(errs...)
}

func (c Cluster) validateJoin() (errs []error) {
	var v4, v6 int
	for _, p := range c.JoinSubnets {
		if p.Addr().Is4() {
			v4++
		} else {
			v6++
		}
		if ipnet.Size(p) < 4 {
			errs = append(errs, fmt.Errorf("--join-subnet %s: too small, want at least 4 addresses", p))
		}
	}
	if v4 > 1 || v6 > 1 {
		errs = append(errs, errors.New("--join-subnet: at most one subnet per address family"))
	}
	if c.HasIPv4() && v4 == 0 {
		errs = append(errs, errors.New("--join-subnet: pods have IPv4 addresses, so an IPv4 subnet is needed, "+
			"such as 100.64.1.0/24"))
	}
	if c.HasIPv6() && v6 == 0 {
		errs = append(errs, errors.New("--join-subnet: pods have IPv6 addresses, so an IPv6 subnet is needed, "+
			"such as fd98::/64"))
	}
	return errs
}
