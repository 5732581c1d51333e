package annotation

import (
	"reflect"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// FuzzCanonical holds that the fast reader says what encoding/json says of every text that it reads.
func FuzzCanonical(f *testing.F) {
	for _, n := range []PodNetwork{
		{}, {IPs: example(f).IPs}, example(f),
	} {
		f.Add(MarshalPodNetworks(n))
	}
	f.Add(`{"default":{"ip_addresses":["a","b"],"mac_address":"\u0041","role":""}}`)
	f.Add(`{"a":{"ip_addresses":["é"],"mac_address":"","role":""}}`)
	f.Add(`{"a":{"ip_addresses":[""],"mac_address":"","gateway_ips":[""],"ip_address":"x","gateway_ip":"y","role":"z"}} `)
	f.Fuzz(func(t *testing.T, value string) {
		key, got, ok := canonical(value)
		if !ok || len(value) > maxSize {
			return
		}
		all, err := entries(value, "", maxSize)
		var want podNetworkJSON
		there, wrong := entryOf(all, key, "", &want)
		if err != nil || len(all) != 1 || !there || wrong != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: read as %q %+v, want %+v (%v, %v, %d entries)", value, key, got, want, err, wrong, len(all))
		}
		held, ok, err := PodNetworkIn(value, key)
		of := PodNetworksOf(value)
		network, iface := names.EntryOf(key)
		in := PodNetworksIn(value, network)
		if n, has := in[iface]; has != (ok && err == nil) || len(in) > 1 || !reflect.DeepEqual(n, held) {
			t.Errorf("%q: PodNetworksIn says %v, and PodNetworkIn %v, %v", value, in, held, err)
		}
		if others := PodNetworksIn(value, "another"+network); len(others) > 0 {
			t.Errorf("%q: PodNetworksIn says %v of another network", value, others)
		}
		if n, has := of[key]; has != (ok && err == nil) || len(of) > 1 || !reflect.DeepEqual(n, held) {
			t.Errorf("%q: PodNetworksOf says %v, and PodNetworkIn %v, %v", value, of, held, err)
		}
	})
}

func example(t testing.TB) PodNetwork {
	t.Helper()
	n, err := ParsePodNetworks(podNetworksExample)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What a master writes is read by the fast reader: otherwise a restart of a large cluster takes a tenth longer.
func TestWrittenIsCanonical(t *testing.T) {
	n := example(t)
	for _, n := range []PodNetwork{n, {IPs: n.IPs, MAC: n.MAC}} {
		text := MarshalPodNetworks(n)
		if key, _, ok := canonical(text); !ok || key != defaultNetwork {
			t.Errorf("%s is not read as %q", text, defaultNetwork)
		}
	}
	text := MarshalPodNetworks(n)
	if allocated := testing.AllocsPerRun(100, func() { _, _, _ = canonical(text) }); allocated > 2 {
		t.Errorf("%s is read with %v allocations, want at most 2", text, allocated)
	}
	if allocated := testing.AllocsPerRun(100, func() { PodNetworksOf(text) }); allocated > 8 {
		t.Errorf("PodNetworksOf reads %s with %v allocations, want at most 8", text, allocated)
	}
}

func BenchmarkParsePodNetworks(b *testing.B) {
	text := MarshalPodNetworks(example(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePodNetworks(text); err != nil {
			b.Fatal(err)
		}
	}
}
