package main

import (
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

const insecureFlagName = "insecure-databases"

// insecureFlag lets a daemon take tcp: addresses.
func insecureFlag() cli.Flag {
	return boolFlag(insecureFlagName, "take tcp: addresses of OVN's databases, where whoever reaches the port may change "+
		"the network")
}

// warnTCP warns of tcp: addresses that a command by hand was given.
func warnTCP(c *cli.Context, flag string, addresses []string) {
	if err := config.RefuseTCP(flag, addresses); err != nil {
		warn(c.App.ErrWriter, err)
	}
}
