package all

import (
	"net/netip"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// planInput is a *.in.yaml: the flags and the facts.
type planInput struct {
	Node, ClusterSubnets, ServiceCIDRs, EncapIP, EncapType, SBAddress, DatapathType, BridgeMappings string
	MTU                                                                                             int

	SystemID string
	Subnets  []string
	EncapMTU int
	RALinks  []string
	Own      string
}

func (in planInput) parse(t *testing.T) (hostplan.Facts, config.Node) {
	t.Helper()
	c := config.DefaultNode()
	c.Name, c.SBAddress, c.MTU = in.Node, in.SBAddress, in.MTU
	if in.DatapathType != "" {
		c.DatapathType = in.DatapathType
	}
	if in.EncapType != "" {
		c.EncapType = in.EncapType
	}
	f := hostplan.Facts{SystemID: in.SystemID, EncapMTU: in.EncapMTU, RALinks: in.RALinks}
	var errs [5]error
	c.ClusterSubnets, errs[0] = config.ParseClusterSubnets(in.ClusterSubnets)
	c.ServiceCIDRs, errs[1] = config.ParsePrefixes("--k8s-service-cidrs", in.ServiceCIDRs)
	f.EncapIPs, errs[2] = config.ParseAddrs("--encap-ip", in.EncapIP)
	f.Own, errs[4] = config.ParseAddrs("own", in.Own)
	c.BridgeMappings, errs[3] = config.ParseBridgeMappings(in.BridgeMappings)
	for _, err := range append(errs[:], c.Validate()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range in.Subnets {
		f.Subnets = append(f.Subnets, netip.MustParsePrefix(s))
	}
	return f, c
}

// Each testdata/plan/NAME.in.yaml gives NAME.out.txt, from every room.
func TestPlans(t *testing.T) {
	testkit.Golden(t, "testdata/plan", 5, func(t *testing.T, raw []byte) string {
		var in planInput
		if err := yaml.UnmarshalStrict(raw, &in); err != nil {
			t.Fatal(err)
		}
		f, c := in.parse(t)
		plan, failed := Plan(f, c)
		got := plan.String()
		for _, err := range failed {
			got += "error: " + err.Error() + "\n"
		}
		return got
	})
}
