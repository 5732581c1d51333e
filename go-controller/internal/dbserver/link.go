package dbserver

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/dbserver/link"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// Channels are what Link carries: for each database, the connections of Raft, and those of ovn-northd. ovn-northd needs
// the machine that leads a database, and all rights on it.
func (m Member) Channels() (out []link.Channel) {
	for _, d := range Databases() {
		out = append(out,
			link.Channel{Protocol: "ovn-" + d.Short + "-raft", Target: m.Layout.RaftSocket(d, m.Node),
				Source: func(node string) string { return m.Layout.RaftSocket(d, node) }},
			link.Channel{Protocol: "ovn-" + d.Short, Target: m.Layout.Socket(d),
				Source: func(node string) string { return m.Layout.PeerSocket(d, node) }})
	}
	return out
}

// serverName is the common name of a certificate of the Northbound database's servers.
const serverName = "ovn-nb"

// TLS is that of Link: both sides have the certificate of a Northbound server.
func (m Member) TLS() (*tls.Config, error) {
	nb := Databases()[0]
	c, err := tlsfiles.Load(config.Keys{PrivKey: m.Layout.key(nb), Cert: m.Layout.key(nb), CACert: m.Layout.ca(nb)})
	if err != nil {
		return nil, err
	}
	c.MinVersion = tls.VersionTLS13
	c.SessionTicketsDisabled = true
	verify := c.VerifyConnection
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("it shows no certificate")
		}
		if err := verify(cs); err != nil {
			return err
		}
		if have := cs.PeerCertificates[0].Subject.CommonName; have != serverName {
			return fmt.Errorf("certificate of %q: want %q", have, serverName)
		}
		return nil
	}
	return c, nil
}
