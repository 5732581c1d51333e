package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Master is the configuration of `ovnkube master`.
type Master struct {
	Kubernetes  Kubernetes
	NB          OVSDB
	Cluster     Cluster
	Metrics     string // HOST:PORT of /metrics, /healthz, /readyz
	Verify      bool   // when idle, compare the database with a full translation
	LeaderElect LeaderElection
	AllowTCP    bool // take tcp: addresses of the Northbound database
	Adopt       bool // take over a database that is recorded for another cluster
	DomainNames DomainNames
	// OVNLatency is how often OVN's latency is measured; 0: never.
	OVNLatency time.Duration
	// ACLConntrack has OVN's ACLs match ports as connection tracking has them.
	ACLConntrack bool
}

// DomainNames is how the names in policies are resolved.
type DomainNames struct {
	Servers []string      // of DNS, ADDRESS:PORT; none for those of /etc/resolv.conf
	Grace   time.Duration // for how long an address is kept that is gone from the answers
}

// ParseDNSServers reads a comma-separated list of servers of DNS, each an address or ADDRESS:PORT.
func ParseDNSServers(list string) ([]string, error) {
	var out []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
			out = append(out, netip.AddrPortFrom(a, dnsPort).String())
			continue
		}
		a, err := netip.ParseAddrPort(text)
		if err != nil || a.Port() == 0 {
			return nil, fmt.Errorf("--policy-dns-servers %.64q: want an address such as 192.0.2.53, 192.0.2.53:5353 or "+
				"[2001:db8::53]:53", text)
		}
		out = append(out, a.String())
	}
	return out, nil
}

const dnsPort = 53

// minOVNLatency is the shortest time between two measurements of OVN's latency. Each costs a write by every node.
const minOVNLatency = 10 * time.Second

// maxDNSGrace is the longest time for which an address is kept that is gone from the answers.
const maxDNSGrace = 24 * time.Hour

// LeaderElection configures the Lease by which several masters elect a leader.
type LeaderElection struct {
	Enabled   bool
	Namespace string
	Name      string
	Lease     time.Duration // how long a leader that stops renewing still holds the Lease
}

// DefaultMaster is one of several masters.
func DefaultMaster() Master {
	return Master{
		NB:      OVSDB{Addresses: []string{"unix:/var/run/ovn/ovnnb_db.sock"}},
		Cluster: DefaultCluster(),
		Metrics: DefaultMasterMetrics, DomainNames: DomainNames{Grace: 10 * time.Minute},
		LeaderElect: LeaderElection{
			Enabled: true, Namespace: "kube-system", Name: "northbound-master", Lease: 15 * time.Second,
		},
	}
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (m Master) Validate() error {
	errs := []error{m.NB.Validate("nb"), m.Cluster.Validate()}
	if m.LeaderElect.Enabled && m.LeaderElect.Lease < 3*time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease %s: want at least 3s", m.LeaderElect.Lease))
	}
	if g := m.DomainNames.Grace; g < 0 || g > maxDNSGrace {
		errs = append(errs, fmt.Errorf("--policy-dns-grace %s: want 0s to %s", g, maxDNSGrace))
	}
	if m.OVNLatency != 0 && m.OVNLatency < minOVNLatency {
		errs = append(errs, fmt.Errorf("--ovn-latency-interval %s: want at least %s, or 0s for never", m.OVNLatency,
			minOVNLatency))
	}
	return errors.Join(errs...)
}

// Validate checks the addresses. db ("nb", "sb") is the beginning of the flags' names in errors.
func (o OVSDB) Validate(db string) error {
	flag := "--" + db + "-address"
	if len(o.Addresses) == 0 {
		return fmt.Errorf("%s: at least one address is needed, such as unix:/var/run/ovn/ovnnb_db.sock", flag)
	}
	var errs []error
	encrypted := false
	for _, a := range o.Addresses {
		if !validRemote(a) {
			errs = append(errs, fmt.Errorf("%s %q: want unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT", flag, a))
		}
		encrypted = encrypted || strings.HasPrefix(a, "ssl:")
	}
	return errors.Join(append(errs, o.Keys.validate(db, encrypted))...)
}

// validRemote reports whether a is an active connection method of ovsdb(7).
func validRemote(a string) bool {
	scheme, rest, _ := strings.Cut(a, ":")
	switch scheme {
	case "unix":
		return strings.HasPrefix(rest, "/")
	case "tcp", "ssl":
		host, port, err := net.SplitHostPort(rest)
		n, perr := strconv.ParseUint(port, 10, 16)
		return err == nil && perr == nil && host != "" && n > 0
	}
	return false
}
