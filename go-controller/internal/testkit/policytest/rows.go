package policytest

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
	"github.com/northbound-net/northbound/go-controller/internal/verdict"
)

// Config is the configuration of a cluster of these families.
func (k *Cluster) Config() config.Cluster {
	c := config.DefaultCluster()
	c.Subnets, c.ServiceCIDRs, c.Multitenant = nil, nil, k.Multitenant
	for _, v4 := range k.Families {
		if v4 {
			c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("10.128.0.0/14"), NodeLength: 23})
			c.ServiceCIDRs = append(c.ServiceCIDRs, netip.MustParsePrefix("10.96.0.0/16"))
		} else {
			c.Subnets = append(c.Subnets, config.ClusterSubnet{CIDR: netip.MustParsePrefix("fd01::/48"), NodeLength: 64})
			c.ServiceCIDRs = append(c.ServiceCIDRs, netip.MustParsePrefix("fd02::/112"))
		}
	}
	return c
}

// Translated is what the master makes of a cluster. A valid cluster has no problems.
func (k *Cluster) Translated(schema *nb.Schema) (*offline.Cluster, error) {
	var objects []cluster.Object
	var errs []error
	decode := func(row kinds.Kind, obj runtime.Object) {
		o, problems := row.Decode(obj)
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("decoding: %w", p))
		}
		objects = append(objects, o)
	}
	for _, n := range k.Nodes {
		decode(kinds.Node(), n)
	}
	for _, n := range k.Namespaces {
		decode(kinds.Namespace(), n)
	}
	for _, p := range k.Pods {
		decode(kinds.Pod(), p)
	}
	for _, p := range k.Policies {
		decode(kinds.NetworkPolicy(config.DefaultPolicies()), p)
	}
	for _, p := range k.ClusterPolicies {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		errs = append(errs, err)
		decode(kinds.ClusterNetworkPolicy(config.DefaultPolicies()), &unstructured.Unstructured{Object: u})
	}
	objects = append(objects, k.More...)
	for name, list := range Domains() {
		var addrs []netip.Addr
		for _, a := range list {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		objects = append(objects, cluster.NewDomainName(name, addrs, ""))
	}
	c := offline.NewOf(k.Config(), schema, all.Translators(schema), objects)
	for _, p := range c.Problems {
		if p.Reason == "PriorityClash" || p.Reason == "DomainNameInside" {
			continue
		}
		errs = append(errs, fmt.Errorf("translating: %w", p))
	}
	return c, errors.Join(errs...)
}

// Rows evaluates the rows that the master makes of a cluster.
func (k *Cluster) Rows(schema *nb.Schema) (*verdict.Evaluator, error) {
	c, err := k.Translated(schema)
	if err != nil {
		return nil, err
	}
	db, errs := c.Database()
	return verdict.New(db), errors.Join(errs...)
}

// Ask asks the rows about a connection.
func Ask(e *verdict.Evaluator, c Connection) (verdict.Verdict, error) {
	p := verdict.Packet{Inport: LogicalPort(c.From), Outport: LogicalPort(c.To), Src: c.From.Addr, Dst: c.To.Addr,
		SrcPort: 40000, DstPort: uint16(c.Port),
		Protocol: map[corev1.Protocol]verdict.Protocol{corev1.ProtocolTCP: verdict.TCP, corev1.ProtocolUDP: verdict.UDP,
			corev1.ProtocolSCTP: verdict.SCTP, ICMP: verdict.ICMP}[c.Protocol]}
	if c.Protocol == ICMP {
		if p.SrcPort, p.ICMPType = 0, 8; p.Src.Is6() {
			p.Protocol, p.ICMPType = verdict.ICMPv6, 128
		}
	}
	if c.Itself() { // through a service: without one, the packet stays in the pod
		p.Src = netip.MustParseAddr(names.HairpinSNAT4)
		if p.Dst.Is6() {
			p.Src = netip.MustParseAddr(names.HairpinSNAT6)
		}
		s, err := e.Stage(verdict.ToLport, c.To.Node, p)
		return verdict.Verdict{Allowed: s.Allowed, Steps: []verdict.Step{s}}, err
	}
	return e.Connection(p, netip.AddrPort{})
}

// LogicalPort is the logical port of an end, "" when routers lead there.
func LogicalPort(e End) string {
	switch {
	case e.Pod != nil:
		return names.Own.LogicalPort(e.Pod.Namespace, e.Pod.Name, "")
	case e.Node != "" && !e.Server:
		return names.ManagementPort(e.Node)
	}
	return ""
}
