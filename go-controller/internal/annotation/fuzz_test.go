package annotation_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Marshalling and parsing a parsed value gives the same value, and no input panics. More seeds are in testdata/fuzz.

func FuzzParseNodeSubnets(f *testing.F) {
	f.Add(`{"default":["10.244.1.0/24","fd01::/64"]}`)
	f.Add(`{"default":"10.244.1.0/24"}`)
	f.Fuzz(func(t *testing.T, value string) {
		want, err := annotation.ParseNodeSubnets(value)
		if err != nil {
			if len(want) != 0 {
				t.Errorf("%v together with error %v", want, err)
			}
			return
		}
		if len(want) == 0 || len(want) > 2 {
			t.Errorf("%d subnets of %q, want one or two", len(want), value)
		}
		got, err := annotation.ParseNodeSubnets(annotation.MarshalNodeSubnets(want))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v came back as %v, %v", value, want, got, err)
		}
	})
}

func FuzzParsePodNetworks(f *testing.F) {
	f.Add(`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"gateway_ips":["10.244.1.1"],"routes":[{"dest":"10.96.0.0/16","nextHop":"10.244.1.1"}],` +
		`"ip_address":"10.244.1.3/24","gateway_ip":"10.244.1.1","role":"primary"}}`)
	f.Add(`{"default":{"ip_addresses":["10.244.1.3/24","fd01::3/64"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"gateway_ips":["10.244.1.1","fd01::1"]}}`)
	f.Fuzz(func(t *testing.T, value string) {
		want, err := annotation.ParsePodNetworks(value)
		if err != nil {
			return
		}
		if len(want.IPs) == 0 || len(want.IPs) > 2 {
			t.Errorf("%d addresses of %q, want one or two", len(want.IPs), value)
		}
		text := annotation.MarshalPodNetworks(want)
		got, err := annotation.ParsePodNetworks(text)
		if err != nil || !slices.Equal(got.IPs, want.IPs) || got.MAC != want.MAC ||
			!slices.Equal(got.Gateways, want.Gateways) || !slices.Equal(got.Routes, want.Routes) {
			t.Errorf("%q: %+v came back as %+v, %v", value, want, got, err)
		}
		if again := annotation.MarshalPodNetworks(got); again != text {
			t.Errorf("%q marshals to %q and then to %q", value, text, again)
		}
	})
}

func FuzzPodAttachments(f *testing.F) {
	f.Add(`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03"},` +
		`"shop.blue/net1":{"ip_addresses":["10.99.0.3/24","fd99::3/64"],"mac_address":"0a:58:0a:63:00:03",` +
		`"routes":[{"dest":"10.99.0.0/16","nextHop":"10.99.0.1"}],"mtu":1300,"role":"secondary"},` +
		`"shop.lan/net2":{"mac_address":"0a:58:0a:63:00:04","role":"secondary"}}`)
	f.Fuzz(func(t *testing.T, value string) {
		want, err := annotation.PodAttachments(value)
		if err != nil || len(value) > 2000 { // a longer value may become one that is too long
			return
		}
		text := annotation.MarshalAttachments(want)
		got, err := annotation.PodAttachments(text)
		if again := annotation.MarshalAttachments(got); err != nil || again != text {
			t.Errorf("%q marshals to %q and then to %q, %v", value, text, again, err)
		}
	})
}

func FuzzParseServiceHealthCheck(f *testing.F) {
	f.Add(`{"interval":1,"timeout":2,"successes":3,"failures":4}`)
	f.Add(`{"interval":null} {}`)
	f.Fuzz(func(t *testing.T, value string) {
		want, err := annotation.ParseServiceHealthCheck(value)
		if err != nil {
			if want != (annotation.HealthCheck{}) {
				t.Errorf("%v together with error %v", want, err)
			}
			return
		}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := annotation.ParseServiceHealthCheck(string(raw)); err != nil || got != want {
			t.Errorf("%q: %v came back as %v, %v", value, want, got, err)
		}
	})
}
