package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// manCommand is `kubectl northbound man`.
func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page kubectl-northbound(1)",
		Description: "`kubectl northbound man | man -l -` shows it.",
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
