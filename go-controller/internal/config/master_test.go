package config

import (
	"strings"
	"testing"
	"time"
)

func TestMasterValidate(t *testing.T) {
	ok := []OVSDB{
		{Addresses: []string{"unix:/var/run/ovn/ovnnb_db.sock"}},
		{Addresses: []string{"tcp:10.0.0.1:6641", "tcp:[fd00::1]:6641", "tcp:db.example.org:6641"}},
		{Addresses: []string{"ssl:10.0.0.1:6641"}, Keys: Keys{PrivKey: "k", Cert: "c", CACert: "ca"}},
	}
	for _, o := range ok {
		m := DefaultMaster()
		m.NB = o
		if err := m.Validate(); err != nil {
			t.Errorf("%v: %v, want no error", o.Addresses, err)
		}
	}
	for want, alter := range map[string]func(*Master){
		"--nb-address: at least one address":                 func(m *Master) { m.NB.Addresses = nil },
		`--nb-address "foo": want unix:/PATH, tcp:HOST:PORT`: func(m *Master) { m.NB.Addresses = []string{"foo"} },
		`--nb-address "unix:db.sock": want unix:/PATH`:       func(m *Master) { m.NB.Addresses = []string{"unix:db.sock"} },
		`--nb-address "tcp:10.0.0.1": want`:                  func(m *Master) { m.NB.Addresses = []string{"tcp:10.0.0.1"} },
		`--nb-address "tcp:10.0.0.1:66410": want`: func(m *Master) {
			m.NB.Addresses = []string{"tcp:10.0.0.1:66410"}
		},
		`--nb-address "tcp::6641": want`:        func(m *Master) { m.NB.Addresses = []string{"tcp::6641"} },
		`--nb-address "tcp:fd00::1:6641": want`: func(m *Master) { m.NB.Addresses = []string{"tcp:fd00::1:6641"} },
		`--nb-address "ptcp:6641": want`: func(m *Master) {
			m.NB.Addresses = []string{"unix:/a",
				"ptcp:6641"}
		},
		"--nb-privkey: an ssl: address needs it": func(m *Master) {
			m.NB = OVSDB{Addresses: []string{"ssl:h:6641"},
				Keys: Keys{Cert: "c", CACert: "a"}}
		},
		"--nb-cert: an ssl: address needs it": func(m *Master) {
			m.NB = OVSDB{Addresses: []string{"ssl:h:6641"},
				Keys: Keys{PrivKey: "k", CACert: "a"}}
		},
		"--nb-cacert: an ssl: address needs it": func(m *Master) {
			m.NB = OVSDB{Addresses: []string{"ssl:h:6641"},
				Keys: Keys{PrivKey: "k", Cert: "c"}}
		},
		"--router-name: the cluster router needs a name": func(m *Master) { m.Cluster.RouterName = "" },
		"--leader-elect-lease 1s: want at least 3s": func(m *Master) {
			m.LeaderElect.Enabled,
				m.LeaderElect.Lease = true, time.Second
		},
		"--policy-dns-grace 25h0m0s: want 0s to 24h": func(m *Master) {
			m.DomainNames.Grace = 25 * time.Hour
		},
		"--policy-dns-grace -1s: want 0s to 24h": func(m *Master) {
			m.DomainNames.Grace = -time.Second
		},
		"--ovn-latency-interval 5s: want at least 10s": func(m *Master) {
			m.OVNLatency = 5 * time.Second
		},
		"--cluster-subnets: at least one is needed, such as 10.128.0.0/1": func(m *Master) { m.Cluster.Subnets = nil },
	} {
		m := DefaultMaster()
		alter(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestParseDNSServers(t *testing.T) {
	got, err := ParseDNSServers("192.0.2.53, 192.0.2.54:5353,2001:db8::53,[2001:db8::54]:5353,[2001:db8::55],")
	want := "192.0.2.53:53 192.0.2.54:5353 [2001:db8::53]:53 [2001:db8::54]:5353 [2001:db8::55]:53"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if got, err := ParseDNSServers(""); len(got) > 0 || err != nil {
		t.Errorf("no servers: %v, %v", got, err)
	}
	for _, bad := range []string{"dns.example.org", "192.0.2.53:0", "192.0.2.53:dns", "192.0.2", "192.0.2.53;192.0.2.54"} {
		if got, err := ParseDNSServers(bad); err == nil || !strings.Contains(err.Error(), "--policy-dns-servers") {
			t.Errorf("%s: %v, %v; want an error", bad, got, err)
		}
	}
}
