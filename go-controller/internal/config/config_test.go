package config_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

func TestParseClusterSubnets(t *testing.T) {
	for in, want := range map[string][]string{
		"10.128.0.0/14/23":                  {"10.128.0.0/14/23"},
		"10.244.0.0/16":                     {"10.244.0.0/16/24"},
		"fd01::/48":                         {"fd01::/48/64"},
		"10.128.0.0/14/23,fd01::/48/64":     {"10.128.0.0/14/23", "fd01::/48/64"},
		" 10.128.0.0/14/23 , fd01::/48/72 ": {"10.128.0.0/14/23", "fd01::/48/72"},
		"10.0.0.0/24/24":                    {"10.0.0.0/24/24"}, // one node
	} {
		got, err := config.ParseClusterSubnets(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		var texts []string
		for _, c := range got {
			texts = append(texts, c.String())
		}
		if !slices.Equal(texts, want) {
			t.Errorf("%q: %v, want %v", in, texts, want)
		}
	}
}

// Every error quotes the value and says what would be right.
func TestParseClusterSubnetsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"": `parsing cluster subnet "": want CIDR or CIDR/NODE-LENGTH such as 10.128.0.0/14/23`,
		"10.128.0.0": `parsing cluster subnet "10.128.0.0": want CIDR or CIDR/NODE-LENGTH such as ` +
			`10.128.0.0/14/23`,
		"10.128.0.0/14/23/1": `parsing cluster subnet "10.128.0.0/14/23/1": want CIDR or CIDR/NODE-LENGTH such ` +
			`as 10.128.0.0/14/23`,
		"10.128.0.0/40": `parsing cluster subnet "10.128.0.0/40": want CIDR or CIDR/NODE-LENGTH such as ` +
			`10.128.0.0/14/23`,
		"pods/14/23": `parsing cluster subnet "pods/14/23": want CIDR or CIDR/NODE-LENGTH such as ` +
			`10.128.0.0/14/23`,
		"10.128.0.1/14/23": `parsing cluster subnet "10.128.0.1/14/23": host bits are set, want 10.128.0.0/14`,
		"10.128.0.0/14/x":  `parsing cluster subnet "10.128.0.0/14/x": node length "x" is not a number`,
		"10.128.0.0/14/13": `parsing cluster subnet "10.128.0.0/14/13": node length /13: want between /14 ` +
			`(the range's own) and /29`,
		"10.128.0.0/14/30": `parsing cluster subnet "10.128.0.0/14/30": node length /30: want between /14 ` +
			`(the range's own) and /29`,
		"10.0.0.0/28": `parsing cluster subnet "10.0.0.0/28": node length /24: want between /28 (the ` +
			`range's own) and /29`,
		"fd01::/48/121": `parsing cluster subnet "fd01::/48/121": node length /121: want between /48 (the ` +
			`range's own) and /120`,
		"fd01::/80": `parsing cluster subnet "fd01::/80": node length /64: want between /80 (the ` +
			`range's own) and /120`,
		"10.128.0.0/14/23,": `parsing cluster subnet "": want CIDR or CIDR/NODE-LENGTH such as 10.128.0.0/14/23`,
		"::ffff:10.128.0.0/110/119": `parsing cluster subnet "::ffff:10.128.0.0/110/119": an IPv4-mapped IPv6 range, ` +
			`want plain IPv4`,
		"fd01::%eth0/48": `parsing cluster subnet "fd01::%eth0/48": want CIDR or CIDR/NODE-LENGTH such as ` +
			`10.128.0.0/14/23`,
		"10.128.0.0/14/99999999999999": `parsing cluster subnet "10.128.0.0/14/99999999999999": node length ` +
			`/99999999999999: want between /14 (the range's own) and /29`,
	} {
		got, err := config.ParseClusterSubnets(in)
		if err == nil {
			t.Errorf("%q: %v, want error %q", in, got, want)
		} else if err.Error() != want {
			t.Errorf("%q:\n got %q\nwant %q", in, err, want)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	got, err := config.ParsePrefixes("--k8s-service-cidrs", "10.96.0.0/16, fd02::/112,")
	want := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd02::/112")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := config.ParsePrefixes("x", ""); err != nil || len(got) != 0 {
		t.Errorf("empty: %v, %v", got, err)
	}
	for in, want := range map[string]string{
		"10.96.0.1/16": `parsing --k8s-service-cidrs "10.96.0.1/16": host bits are set, want 10.96.0.0/16`,
		"10.96.0.0":    `parsing --k8s-service-cidrs "10.96.0.0": want a CIDR such as 10.96.0.0/16`,
		"::ffff:10.0.0.0/104": `parsing --k8s-service-cidrs "::ffff:10.0.0.0/104": ` +
			`an IPv4-mapped IPv6 range, want plain IPv4`,
	} {
		if _, err := config.ParsePrefixes("--k8s-service-cidrs", in); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func clusterWith(t *testing.T, subnets, services, join string) config.Cluster {
	t.Helper()
	c := config.Cluster{RouterName: "r"}
	var err error
	if c.Subnets, err = config.ParseClusterSubnets(subnets); err != nil {
		t.Fatal(err)
	}
	if c.ServiceCIDRs, err = config.ParsePrefixes("", services); err != nil {
		t.Fatal(err)
	}
	if c.JoinSubnets, err = config.ParsePrefixes("", join); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValidate(t *testing.T) {
	if err := config.DefaultCluster().Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	for _, c := range []struct{ subnets, services, join, want string }{
		{"10.128.0.0/14/23,fd01::/48/64", "10.96.0.0/16,fd02::/112", "100.64.1.0/24,fd98::/64", ""},
		{"fd01::/48/64", "fd02::/112", "fd98::/64", ""},
		{"10.128.0.0/14/23,10.132.0.0/14/23", "10.96.0.0/16", "100.64.1.0/24", ""}, // two ranges of a family
		{"10.96.0.0/12/23", "10.96.0.0/16", "100.64.1.0/24",
			"--cluster-subnets 10.96.0.0/12 overlaps --k8s-service-cidrs 10.96.0.0/16: they must be disjoint"},
		{"10.0.0.0/16,10.0.0.0/17", "", "100.64.1.0/24",
			"--cluster-subnets 10.0.0.0/16 overlaps --cluster-subnets 10.0.0.0/17: they must be disjoint"},
		{"100.64.0.0/16", "", "100.64.1.0/24", "--cluster-subnets 100.64.0.0/16 overlaps --join-subnet 100.64.1.0/24: " +
			"they must be disjoint"},
		{"10.0.0.0/16", "100.64.1.0/25", "100.64.1.0/24",
			"--k8s-service-cidrs 100.64.1.0/25 overlaps --join-subnet 100.64.1.0/24: they must be disjoint"},
		{"fd01::/48", "fd01::/112", "fd98::/64", "--cluster-subnets fd01::/48 overlaps --k8s-service-cidrs fd01::/112: " +
			"they must be disjoint"},
		{"10.0.0.0/16", "", "",
			"--join-subnet: pods have IPv4 addresses, so an IPv4 subnet is needed, such as 100.64.1.0/24"},
		{"10.0.0.0/16,fd01::/48", "", "100.64.1.0/24",
			"--join-subnet: pods have IPv6 addresses, so an IPv6 subnet is needed, such as fd98::/64"},
		{"10.0.0.0/16", "", "100.64.1.0/31", "--join-subnet 100.64.1.0/31: too small, want at least 4 addresses"},
		{"10.0.0.0/16", "", "100.64.1.0/24,100.64.2.0/24", "--join-subnet: at most one subnet per address family"},
	} {
		err := clusterWith(t, c.subnets, c.services, c.join).Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s %s %s:\n got %v\nwant %s", c.subnets, c.services, c.join, err, c.want)
		}
	}
}

// Validate reports all errors at once.
func TestValidateTellsEverything(t *testing.T) {
	c := clusterWith(t, "10.0.0.0/16,10.0.0.0/17", "10.0.0.0/24", "")
	c.RouterName = ""
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 5 { // three overlaps, no join subnet, no router name
		t.Errorf("%d errors, want 5:\n%s", len(lines), err)
	}
	none := config.Cluster{RouterName: "r"}
	if err := none.Validate(); err == nil || !strings.Contains(err.Error(), "--cluster-subnets: at least one is needed") {
		t.Errorf("no subnets: %v", err)
	}
}

func TestFamilies(t *testing.T) {
	for subnets, want := range map[string][2]bool{
		"10.0.0.0/16":           {true, false},
		"fd01::/48":             {false, true},
		"fd01::/48,10.0.0.0/16": {true, true},
	} {
		c := clusterWith(t, subnets, "", "")
		if got := [2]bool{c.HasIPv4(), c.HasIPv6()}; got != want {
			t.Errorf("%s: IPv4, IPv6 = %v, want %v", subnets, got, want)
		}
	}
}
