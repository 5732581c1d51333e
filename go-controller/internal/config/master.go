package config

import (
	"errors"
	"fmt"
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
	errs := []error{m.NB.Validate("--nb-address"), m.Cluster.Validate()}
	if m.LeaderElect.Enabled && m.LeaderElect.Lease < 3*time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-lease %s: want at least 3s", m.LeaderElect.Lease))
	}
	return errors.Join(errs...)
}

// Validate tells what is wrong with the addresses; flag names the setting.
func (o OVSDB) Validate(flag string) error {
	if len(o.Addresses) == 0 {
		return fmt.Errorf("%s: at least one address is needed, such as unix:/var/run/ovn/ovnnb_db.sock", flag)
	}
	var errs []error
	for _, a := range o.Addresses {
		scheme, rest, ok := strings.Cut(a, ":")
		switch {
		case ok && scheme == "unix" && strings.HasPrefix(rest, "/"):
		case ok && (scheme == "tcp" || scheme == "ssl") && strings.Contains(rest, ":"):
		default:
			errs = append(errs, fmt.Errorf("%s %q: want unix:/PATH, tcp:HOST:PORT or ssl:HOST:PORT", flag, a))
		}
	}
	return errors.Join(errs...)
}
