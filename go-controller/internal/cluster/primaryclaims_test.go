package cluster_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// team is a ClusterUserDefinedNetwork of the namespaces with the label team.
func team(primary bool) *cluster.UserNetwork {
	selects := cluster.NewLabelSelector(cluster.Requirement{Key: "team", Operator: cluster.Exists})
	return &cluster.UserNetwork{Name: cluster.Name{Name: "team"}, Selects: &selects, Network: &cluster.Network{
		Name: names.Defined("", "team"), Topology: cluster.Layer2, Primary: primary, UserDefined: true,
		Subnets: []config.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.77.0.0/16")}}}}
}

// A ClusterUserDefinedNetwork is the primary network of the namespaces that it selects and that have the label, unless
// they have a network of its name. A namespace that is not known may be one of them.
func TestSharedPrimary(t *testing.T) {
	type networks = []*cluster.UserNetwork
	const onlyLabel, both = names.PrimaryLabel, names.PrimaryLabel + " team"
	own := func(name string, primary bool) *cluster.UserNetwork {
		u := team(primary)
		u.Name, u.Selects = cluster.Name{Namespace: "red", Name: name}, nil
		u.Network.Name = names.Defined("red", name)
		return u
	}
	since := func(created int64, u *cluster.UserNetwork) *cluster.UserNetwork {
		u.Created = created
		return u
	}
	none := "the namespace has the label " + names.PrimaryLabel + ", but no primary network: make one, or the " +
		"namespace anew"
	for name, c := range map[string]struct {
		labels   string // "" for a namespace that is not known
		networks []*cluster.UserNetwork
		want     names.Network
		why      string
		locked   bool
	}{
		"selected":                  {both, networks{team(true)}, ".team", "", true},
		"not selected":              {onlyLabel, networks{team(true)}, "", none, true},
		"no label":                  {"team", networks{team(true)}, "", "", false},
		"not known":                 {"", networks{team(true)}, "", "the Namespace is not known yet", true},
		"secondary":                 {both, networks{team(false)}, "", none, true},
		"two of one age":            {both, networks{team(true), own("mine", true)}, ".team", "", true},
		"own one is older":          {both, networks{since(9, team(true)), own("mine", true)}, "red.mine", "", true},
		"shared one is older":       {both, networks{team(true), since(9, own("mine", true))}, ".team", "", true},
		"own of the name":           {both, networks{team(true), own("team", true)}, "red.team", "", true},
		"own of the name, not such": {both, networks{team(true), own("team", false)}, "", none, true},
	} {
		labels := map[string]string{}
		for _, l := range strings.Fields(c.labels) {
			labels[l] = ""
		}
		objects := []cluster.Object{&cluster.Namespace{Name: "red", Labels: cluster.NewLabels(labels)}}
		if c.labels == "" {
			objects = nil
		}
		for _, n := range c.networks {
			objects = append(objects, n)
		}
		for range objects { // each is the last one once
			objects = append(objects[1:], objects[0])
			s := cluster.NewState(config.DefaultCluster())
			for _, o := range objects {
				s.Apply(cluster.Event{Ref: o.Ref(), New: o})
			}
			n, why := s.Primary("red")
			if locked := s.Locked(cluster.Name{Namespace: "red"}); n != c.want || why != c.why || locked != c.locked {
				t.Errorf("%s: network %q, %q, locked %v; want %q, %q, %v", name, n, why, locked, c.want, c.why, c.locked)
			}
			for _, o := range objects {
				s.Apply(cluster.Event{Ref: o.Ref()})
			}
			if s.AnyPrimary() || s.Locked(cluster.Name{Namespace: "red"}) {
				t.Errorf("%s: there is a primary network when everything is gone", name)
			}
		}
	}
}

// Pods know a network that namespaces share as one of their own namespace.
func TestAttachmentsOfSharedPrimary(t *testing.T) {
	s := cluster.NewState(config.DefaultCluster())
	labels := cluster.NewLabels(map[string]string{names.PrimaryLabel: "", "team": ""})
	p := &cluster.Pod{Name: cluster.Name{Namespace: "red", Name: "a"}, Node: "n1"}
	for _, o := range []cluster.Object{&cluster.Namespace{Name: "red", Labels: labels}, team(true), p} {
		s.Apply(cluster.Event{Ref: o.Ref(), New: o})
	}
	var keys []string
	for a := range s.Attachments(p) {
		keys = append(keys, a.Key())
	}
	if got := strings.Join(keys, " "); got != "default red.team/ovn-udn1" {
		t.Errorf("attachments %s", got)
	}
	if got := s.PodsInNetwork(".team"); len(got) != 1 || got[0] != p.Name {
		t.Errorf("pods in the network: %v", got)
	}
}
