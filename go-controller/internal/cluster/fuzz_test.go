package cluster_test

import (
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// The record of a node that was set up by hand comes back from its own text, and no input panics.
func FuzzParseByHand(f *testing.F) {
	f.Add(`{"k8s.ovn.org/node-chassis-id":"c1","k8s.ovn.org/node-subnets":{"default":["10.244.1.0/24"]}}`)
	f.Add(`{"k8s.ovn.org/l3-gateway-config":{"default":{"mode":"shared"}}}`)
	f.Add(`[1]`)
	f.Fuzz(func(t *testing.T, record string) {
		want, problems := cluster.ParseByHand("n1", record)
		for _, p := range problems {
			if p.Error() == "" {
				t.Errorf("a problem of %q without a text", record)
			}
		}
		text := want.ByHandRecord()
		got, problems := cluster.ParseByHand("n1", text)
		if len(problems) != 0 || got.ByHandRecord() != text {
			t.Errorf("%q became %q and then %q, with %v", record, text, got.ByHandRecord(), problems)
		}
	})
}
