package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/northbound-net/northbound/test/sandbox/pki"
)

// Keys are PEM files for ssl: addresses of a database.
type Keys struct{ Key, Cert, CA string }

// trusted is the file of several authorities' certificates.
const trusted = "trusted.crt"

// The authorities of the databases: a certificate of the one is of no use at the other. dir is below the directory of
// the state.
func keys(state, authority, name string) Keys {
	dir := filepath.Join(state, Name, "pki", authority)
	return Keys{filepath.Join(dir, name+".key"), filepath.Join(dir, name+".crt"), filepath.Join(dir, "ca.crt")}
}

// trusting is k with all authorities that its owner trusts.
func (k Keys) trusting() Keys {
	k.CA = filepath.Join(filepath.Dir(k.CA), trusted)
	return k
}

// NBKeys are those of the master, and of an administrator, for the Northbound database.
func (c *Control) NBKeys() Keys { return keys(c.Spec.State, NB, Master) }

// NodeKeys are those of a node for the Southbound database. Their common name is its chassis name.
func NodeKeys(state, node string) Keys { return keys(state, SB, node) }

// northdKeys are those of ovn-northd for both databases of a cluster, which believe its own authority, too.
func (c *Control) northdKeys() Keys { return keys(c.Spec.State, Northd, Northd).trusting() }

// ServerKeys are those of a database's servers.
func (c *Control) ServerKeys(service string) Keys {
	return keys(c.Spec.State, service, "server").trusting()
}

// certify makes an authority for each database, the servers' certificates and those of their clients. ovn-northd has
// one certificate for both databases, and therefore an authority of its own.
func (c *Control) certify() error {
	clients := map[string][]string{NB: {Master}, SB: c.Config.Nodes}
	trust := map[string][]string{NB: {NB}, SB: {SB}}
	if c.clustered() {
		clients[Northd] = []string{Northd}
		trust = map[string][]string{NB: {NB, Northd}, SB: {SB, Northd}, Northd: {NB, SB}}
	}
	for authority, names := range clients {
		if err := c.authority(authority, names); err != nil {
			return err
		}
	}
	for authority, others := range trust {
		var all []byte
		for _, other := range others {
			b, err := os.ReadFile(keys(c.Spec.State, other, "").CA)
			if err != nil {
				return fmt.Errorf("reading an authority's certificate: %w", err)
			}
			all = slices.Concat(all, b)
		}
		if err := os.WriteFile(keys(c.Spec.State, authority, "").trusting().CA, all, 0o600); err != nil {
			return fmt.Errorf("writing the authorities' certificates: %w", err)
		}
	}
	return nil
}

// authority makes an authority with a certificate for its servers and for each client.
func (c *Control) authority(name string, clients []string) error {
	dir := filepath.Dir(keys(c.Spec.State, name, "").CA)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.New(dir)
	if err != nil {
		return err
	}
	errs := []error{ca.Peer(dir, "server", []string{name})}
	for _, client := range clients {
		errs = append(errs, ca.Client(dir, client, client))
	}
	return errors.Join(errs...)
}
