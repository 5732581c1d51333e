package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Master is what `ovnkube master` is told.
type Master struct {
	Kubernetes  Kubernetes
	NB          OVSDB
	Cluster     Cluster
	Metrics     string // HOST:PORT of /metrics, /healthz, /readyz
	Verify      bool
	LeaderElect LeaderElection
}

// LeaderElection says whether several masters take turns, by a Lease.
type LeaderElection struct {
	Enabled   bool
	Namespace string
	Name      string
	Lease     time.Duration // how long a leader that fell silent keeps the lease
}

// DefaultMaster is a single master.
func DefaultMaster() Master {
	return Master{
		NB:          OVSDB{Addresses: []string{"unix:/var/run/ovn/ovnnb_db.sock"}},
		Cluster:     DefaultCluster(),
		Metrics:     DefaultMasterMetrics,
		LeaderElect: LeaderElection{Namespace: "kube-system", Name: "northbound-master", Lease: 15 * time.Second},
	}
}

// Validate tells everything that is wrong, each error naming the flag.
func (m Master) Validate() error {
	errs := []error{m.NB.Validate("nb"), m.Cluster.Validate()}
	if m.LeaderElect.Enabled && m.LeaderElect.Lease < 3*time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease %s: want at least 3s", m.LeaderElect.Lease))
	}
	return errors.Join(errs...)
}

// Validate tells what is wrong with the addresses; db ("nb", "sb") begins the
// names of the flags in errors.
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
	if encrypted {
		for _, f := range []struct{ name, file string }{{"privkey", o.PrivKey}, {"cert", o.Cert}, {"cacert", o.CACert}} {
			if f.file == "" {
				errs = append(errs, fmt.Errorf("--%s-%s: an ssl: address needs it", db, f.name))
			}
		}
	}
	return errors.Join(errs...)
}

// validRemote tells whether a is an active connection method of ovsdb(7).
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
