package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/resolve"
)

const hostsFlagName = "hosts"

// hostsFlag names a file with the addresses of names. A command that reads manifests asks no DNS.
func hostsFlag() cli.Flag {
	return stringFlag(hostsFlagName, "", "`FILE` with the addresses of names in domainNames, as /etc/hosts has them: "+
		"beside manifests, nobody asks DNS")
}

// hosts reads the file of hostsFlag.
func hosts(c *cli.Context) ([]cluster.Object, error) {
	file := c.String(hostsFlagName)
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	names, err := resolve.ParseHosts(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("--hosts %s: %w", file, err)
	}
	var out []cluster.Object
	for name, addrs := range names {
		out = append(out, cluster.NewDomainName(name, addrs, ""))
	}
	return out, nil
}

// warnOfNames warns of names in rules whose addresses are not known.
func warnOfNames(c *cli.Context, made *offline.Cluster) {
	for _, name := range index.DomainNamesOf(made.State).Unknown(made.State) {
		text := fmt.Sprintf("domainNames: the addresses of %s are not known here: rules accept nothing for it", name)
		if hasFlag(c.Command, hostsFlagName) {
			text += "; --hosts FILE tells them"
		}
		warn(c.App.ErrWriter, text)
	}
}
