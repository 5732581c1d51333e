package master

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// The rows of an object tell that its kind was served.
func TestHasOwners(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	testkit.Run(t, "ovsdb-client", "transact", remote, `["OVN_Northbound",{"op":"insert","table":"Address_Set","row":`+
		`{"name":"a","external_ids":["map",[["k8s.ovn.org/owner-type","ClusterNetworkPolicy"],`+
		`["k8s.ovn.org/owner-name","p"]]]}}]`)
	db := ovsdb.New(config.OVSDB{Addresses: []string{remote}}, nb.NewSchema(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended, stop := context.WithCancel(t.Context())
	stop()
	if hasOwners(ended, db.Session, cluster.KindClusterNetworkPolicy) {
		t.Error("without a connection a policy has rows")
	}
	var running sync.WaitGroup
	running.Go(func() { db.Run(ctx) })
	defer running.Wait()
	defer cancel()
	if !hasOwners(ctx, db.Session, cluster.KindClusterNetworkPolicy) {
		t.Error("the rows of a policy are not found")
	}
	if hasOwners(ctx, db.Session, cluster.KindServiceCIDR) {
		t.Error("a ServiceCIDR has rows")
	}
}

// The rows that a network has once tell by which kind it was declared.
func TestOwnersOfNetworks(t *testing.T) {
	for name, want := range map[string][2]bool{
		"cluster": {}, "shop.blue/cluster": {true, false}, "shop.blue/user-defined": {false, true},
		"shop.blue/n1": {},
	} {
		o := nb.Owner{Kind: names.KindCluster, Name: name}
		definition, user := cluster.KindNetworkDefinition.Owns(), cluster.KindUserNetwork.Owns()
		got := [2]bool{definition(o.Kind, o.Name), user(o.Kind, o.Name)}
		if got != want || user(names.KindNode, name) {
			t.Errorf("%s: of a definition, of a UserDefinedNetwork: %v, want %v", name, got, want)
		}
	}
}
