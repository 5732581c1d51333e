package main

import (
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/version"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print which build this is: version, commit, Go and platform",
		Flags: []cli.Flag{printableFlag(asText, "")},
		Action: func(c *cli.Context) error {
			write, err := printer(c, asText)
			if err != nil {
				return err
			}
			return write(version.Get())
		},
	}
}
