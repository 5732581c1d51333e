package hostfacts

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// world is a host with these addresses.
type world map[string]hostnet.Place

var errBroken = errors.New("netlink is broken")

func (w world) Find(a netip.Addr) (hostnet.Place, bool, error) {
	if w == nil {
		return hostnet.Place{}, false, errBroken
	}
	p, ok := w[a.String()]
	return p, ok, nil
}

func (w world) RALinks() ([]string, error) { return []string{"eth0"}, nil }

func place(link, prefix string, mtu int) hostnet.Place {
	return hostnet.Place{Link: link, Prefix: netip.MustParsePrefix(prefix), MTU: mtu}
}

func addrs(texts ...string) []netip.Addr { return Addrs(texts) }

func TestGather(t *testing.T) {
	k := world{
		"172.18.0.2": place("eth0", "172.18.0.2/16", 1500), "fd18::2": place("eth1", "fd18::2/64", 1400),
		"172.18.0.3": place("eth0", "172.18.0.3/16", 1500),
	}
	subnets := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}
	n := Node{Subnets: subnets, EncapIPs: addrs("172.18.0.2", "fd18::2", "192.0.2.9"), Own: addrs("172.18.0.3")}
	f, places, err := Gather(n, ExternalIDs{"system-id": "chassis-1"}, k)
	want := hostplan.Facts{
		SystemID: "chassis-1", Subnets: subnets, EncapIPs: n.EncapIPs, EncapMTU: 1400, Own: n.Own, RALinks: []string{"eth0"},
	}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%v: facts\n%+v\nwant\n%+v", err, f, want)
	}
	if want := []hostnet.Place{k["172.18.0.2"], k["fd18::2"]}; !reflect.DeepEqual(places, want) {
		t.Errorf("places %v, want %v", places, want)
	}
	if _, _, err := Gather(n, ExternalIDs{}, world(nil)); !errors.Is(err, errBroken) {
		t.Errorf("of a kernel that does not answer: %v", err)
	}
}

// Of each family the first address that is here counts, in the order given.
func TestOnHost(t *testing.T) {
	k := world{
		"172.18.0.3": place("eth0", "172.18.0.3/16", 1500), "172.18.0.2": place("eth0", "172.18.0.2/16", 1500),
		"fd18::2": place("eth1", "fd18::2/64", 1400),
	}
	got, err := OnHost(k, addrs("192.0.2.9", "fd18::2", "172.18.0.3", "nonsense", "172.18.0.2"))
	if want := addrs("fd18::2", "172.18.0.3"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if _, err := OnHost(world(nil), addrs("192.0.2.9")); !errors.Is(err, errBroken) {
		t.Errorf("of a kernel that does not answer: %v", err)
	}
}

func TestGatewayRecord(t *testing.T) {
	x, err := GatewayRecord(ExternalIDs{
		"ovn-bridge-mappings": "physnet:breth0", "northbound-gateway-bridge": "breth0",
		"northbound-gateway-mapping": "physnet:breth0",
	})
	want := hostplan.GatewayRecord{Mappings: "physnet:breth0", Bridge: "breth0", Added: "physnet:breth0"}
	if err != nil || x != want {
		t.Errorf("%+v %v, want %+v", x, err, want)
	}
}
