package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Settings are values of flags on which the programs of a cluster must agree: the flag without its dashes, and its
// value in the form that the flag takes.
type Settings map[string]string

// Settings are all settings that shape the logical network. The master publishes them.
func (c Cluster) Settings() Settings {
	s := shared(c.Subnets, c.JoinSubnets, c.Services)
	s["k8s-service-cidrs"] = PrefixList(c.ServiceCIDRs)
	s["gateway-cidrs"], s["gateway-pin-cidrs"] = PrefixList(c.Claims.GatewayCIDRs), PrefixList(c.Claims.PinCIDRs)
	s["multitenant"], s["acl-log-rate"] = strconv.FormatBool(c.Multitenant), strconv.Itoa(c.ACLLogRate)
	s["max-pod-connections"] = strconv.Itoa(c.MaxPodConnections)
	s["max-policy-rules"] = strconv.Itoa(c.Policies.MaxRules)
	s["max-policy-selectors"] = strconv.Itoa(c.Policies.MaxSelectors)
	s["max-policy-ranges"] = strconv.Itoa(c.Policies.MaxRanges)
	s["max-policy-ports"] = strconv.Itoa(c.Policies.MaxPorts)
	s["max-namespace-policy-selectors"] = strconv.Itoa(c.Policies.MaxNamespaceSelectors)
	s["max-namespace-policy-terms"] = strconv.Itoa(c.Policies.MaxNamespaceTerms)
	s["physical-networks"] = joined(c.PhysicalNetworks)
	if c.RouterNamed {
		s["router-name"] = c.RouterName
	}
	if c.Tunnels.EncapType != "" {
		s["encap-type"] = c.Tunnels.EncapType
	}
	if c.Tunnels.MTU != 0 {
		s["mtu"] = strconv.Itoa(c.Tunnels.MTU)
	}
	return s
}

// Settings are those of an agent that must be the master's, if the master publishes them.
func (n Node) Settings() Settings {
	s := shared(n.ClusterSubnets, n.JoinSubnets, n.Services)
	s["k8s-service-cidrs"] = PrefixList(n.ServiceCIDRs)
	s["encap-type"], s["mtu"] = n.EncapType, strconv.Itoa(n.MTU)
	return s
}

// Outdated lists the flags of an agent that runs with other values than are published now, sorted. before is what was
// published when it started. given tells which flags the operator has set: those are in contradicting.
func (s Settings) Outdated(before, now Settings, given func(flag string) bool) (outdated, contradicting []string) {
	for _, flag := range slices.Sorted(maps.Keys(s)) {
		value, published := now[flag]
		_, was := before[flag]
		withdrawn := was && (flag == "mtu" || flag == "encap-type") // others are always published
		switch {
		case published && sameList(s[flag], value), !published && (!withdrawn || given(flag)):
		case given(flag):
			contradicting = append(contradicting, flag)
		default:
			outdated = append(outdated, flag)
		}
	}
	return outdated, contradicting
}

func shared(subnets []ClusterSubnet, join []netip.Prefix, services Services) Settings {
	return Settings{
		"cluster-subnets":       SubnetList(subnets),
		"join-subnet":           PrefixList(join),
		"external-ip-cidrs":     PrefixList(services.ExternalCIDRs),
		"max-service-vips":      strconv.Itoa(services.MaxVIPs),
		"max-namespace-vips":    strconv.Itoa(services.MaxNamespaceVIPs),
		"max-service-endpoints": strconv.Itoa(services.MaxEndpoints),
	}
}

// Validate returns an error for published values that no agent could start with.
func (s Settings) Validate() error {
	subnets, err := ParseClusterSubnets(s["cluster-subnets"])
	errs := []error{err}
	t := Tunnels{EncapType: s["encap-type"]}
	if mtu, ok := s["mtu"]; ok {
		if t.MTU, err = strconv.Atoi(mtu); err != nil {
			errs = append(errs, fmt.Errorf("--mtu %q: %w: want bytes", mtu, err))
		}
	}
	errs = append(errs, t.validate(subnets))
	for _, flag := range []string{"join-subnet", "k8s-service-cidrs"} {
		for p := range strings.SplitSeq(s[flag], ",") {
			if _, err := netip.ParsePrefix(p); err != nil && p != "" {
				errs = append(errs, fmt.Errorf("--%s: %w: want prefixes", flag, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Agree returns an error for each setting that both have with different values. The order in a list does not matter.
// where says who published the others.
func (s Settings) Agree(published Settings, where string) error {
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(s)) {
		theirs, ok := published[flag]
		if ok && !sameList(s[flag], theirs) {
			errs = append(errs, fmt.Errorf("--%s %s: the master runs with %s (%s): want the same, or leave it out",
				flag, quoteEmpty(s[flag]), quoteEmpty(theirs), where))
		}
	}
	return errors.Join(errs...)
}

func quoteEmpty(value string) string { return cmp.Or(value, `""`) }

func sameList(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.SplitSeq(a, ",")), slices.Sorted(strings.SplitSeq(b, ",")))
}
