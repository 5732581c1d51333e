package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// manCommand is `kubectl northbound man`.
func manCommand() *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print the manual page kubectl-northbound(1)",
		UsageText: "kubectl northbound [FLAGS] man", HideHelpCommand: true,
		Description: "The page has the help of all commands. man -l - shows it.\n\n" +
			"Examples:\n   kubectl northbound man | man -l -\n" +
			"   kubectl northbound man > /usr/local/share/man/man1/kubectl-northbound.1",
		Action: func(c *cli.Context) error {
			app := newApp()
			app.Name, app.UsageText = "kubectl-northbound", "" // the library makes a synopsis of the flags
			text, err := app.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("writing the manual page: %w", err)
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return err
		},
	}
}
