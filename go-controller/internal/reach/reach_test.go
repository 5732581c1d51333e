package reach_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// shop is a cluster of the pods shop/web and shop/db, where db admits web alone.
func shop(t *testing.T) (*offline.Cluster, *nb.Database) {
	t.Helper()
	app := func(name string) cluster.LabelSelector {
		return cluster.NewLabelSelector(cluster.Requirement{Key: "app", Operator: cluster.In, Values: []string{name}})
	}
	objects := []cluster.Object{&cluster.Node{Name: "n1", UID: "u1"}, &cluster.Namespace{Name: "shop"},
		&cluster.NetworkPolicy{Name: cluster.Name{Namespace: "shop", Name: "db"}, Pods: app("db"),
			Ingress: cluster.PolicyRules{Isolates: true, Rules: []cluster.PolicyRule{{AnyPort: true,
				Peers: []cluster.PolicyPeer{{Pods: &cluster.PodSelector{Namespace: "shop", Pods: app("web")}}}}}}}}
	for _, name := range []string{"web", "db"} {
		objects = append(objects, &cluster.Pod{Name: cluster.Name{Namespace: "shop", Name: name}, UID: name, Node: "n1",
			Labels: cluster.NewLabels(map[string]string{"app": name})})
	}
	made := offline.New(config.DefaultCluster(), objects)
	db, errs := made.Database()
	if len(errs)+len(made.Problems) > 0 {
		t.Fatal(errs, made.Problems)
	}
	return made, db
}

// ingress is what is decided about web's connection to a port of db.
func ingress(t *testing.T, made *offline.Cluster, db *nb.Database) reach.Decision {
	t.Helper()
	q, err := reach.Ask("shop/web", "shop/db:80")
	if err != nil {
		t.Fatal(err)
	}
	check, err := reach.New(made.Core, db).Check(q)
	if err != nil {
		t.Fatal(err)
	}
	return check.Connections[0].Answers[0].Ingress
}

// What decides need not be a rule of a NetworkPolicy: a rule of another kind may pass the packet on, or decide, and so
// may the ACL of an operator.
func TestOtherACLs(t *testing.T) {
	const rule = "np/shop/db spec.ingress[0]"
	for _, c := range []struct {
		action string
		tier   int
		marked bool
		want   string
	}{
		{nbdb.ACLActionAllow, 3, true, rule},
		{nbdb.ACLActionDrop, 0, false, "ACL 11111111-0000-4000-8000-000000000001, which Northbound did not make: drop ip4"},
		{nbdb.ACLActionDrop, 0, true, "other/strict spec.ingress[7]"},
		{nbdb.ACLActionPass, 0, true, rule + ", after other/strict spec.ingress[7] passed it on"},
	} {
		made, db := shop(t)
		for _, m := range db.Rows(nbdb.ACLTable) {
			m.(*nbdb.ACL).Tier = 2
		}
		acl := &nbdb.ACL{UUID: "11111111-0000-4000-8000-000000000001", Action: c.action, Tier: c.tier, Priority: 32767,
			Direction: nbdb.ACLDirectionToLport, Match: "ip4"}
		if c.marked {
			acl.ExternalIDs = map[string]string{names.OwnerTypeKey: "Other", names.OwnerNameKey: "strict",
				names.RoleKey: "ingress-7", names.RuleKey: "ingress:7"}
		}
		db.Put(acl)
		for _, m := range db.Rows(nbdb.LogicalSwitchTable) {
			if s := m.(*nbdb.LogicalSwitch); s.Name == "n1" {
				s.ACLs = append(s.ACLs, acl.UUID)
			}
		}
		if got := ingress(t, made, db); got.Reason != c.want || got.Allowed != strings.HasPrefix(c.want, rule) {
			t.Errorf("%s in tier %d: %+v, want %s", c.action, c.tier, got, c.want)
		}
	}
}

// A question is the same as its text.
func FuzzAsk(f *testing.F) {
	for _, to := range []string{"shop/web:80", "svc/shop/web:http/UDP", "[2001:db8::1]:53/udp", "192.0.2.1",
		"node/n1:/icmp",
		"::ffff:192.0.2.1", "ff02::1", "a/b:0", "[]:1", "pod/a/b/c", "fe80::1%eth0", ":", "/:", "]"} {
		f.Add("shop/web", to)
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		q, err := reach.Ask(from, to)
		if err != nil {
			return
		}
		for _, side := range []reach.Side{q.From, q.To} {
			if named := side.Name.Name != ""; named == side.Addr.IsValid() || named == (side.Kind == reach.Address) {
				t.Errorf("%q to %q: side %+v, want a name or an address", from, to, side)
			}
		}
		text := q.To.String() + q.Port.String()
		if q.To.Kind == reach.Address {
			text = "[" + q.To.String() + "]" + q.Port.String()
		}
		again, err := reach.Ask(q.From.String(), text)
		if err != nil || again != q {
			t.Errorf("%q to %q is %+v; its text %q is %+v, %v", from, to, q, text, again, err)
		}
	})
}

// Addresses of a family that pods do not have are refused, and those of pods are known.
func TestAddresses(t *testing.T) {
	made, db := shop(t)
	r := reach.New(made.Core, db)
	web := cluster.PodAddrs(made.State.PodNetworks[cluster.PodPort{Pod: cluster.Name{Namespace: "shop", Name: "web"}}])[0]
	for from, want := range map[string]string{web.String(): "pod/shop/web", "192.0.2.1": "outside", "fd01::3": ""} {
		check, err := r.Check(reach.Question{From: reach.Side{Kind: reach.Address, Addr: netip.MustParseAddr(from)},
			To: reach.Side{Kind: reach.Pod, Name: cluster.Name{Namespace: "shop", Name: "db"}}})
		if err != nil != (want == "") || err == nil && check.Connections[0].From.Name != want {
			t.Errorf("%s: %+v, %v; want %s", from, check, err, want)
		}
	}
}
