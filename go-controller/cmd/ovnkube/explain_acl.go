package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/reach"
)

// aclFlag takes a line of a log, or all of standard input.
func aclFlag() cli.Flag {
	return &cli.StringFlag{Name: "acl", Usage: "explain a `LINE` that ovn-controller logged about an ACL: which policy " +
		"and rule decided, and whose the addresses are; - reads the log from standard input"}
}

// explainACL explains the lines of --acl.
func explainACL(c *cli.Context) error {
	lines := []string{c.String("acl")}
	if lines[0] == "-" {
		var err error
		if lines, err = aclLines(c.App.Reader); err != nil {
			return err
		}
	}
	write, err := textOrJSON(c)
	if err != nil {
		return err
	}
	broken, err := reachable(c, func(r *reach.Cluster) error {
		var errs []error
		for _, line := range lines {
			x, err := r.Logged(line)
			if err == nil {
				err = write(x)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return errors.Join(err, broken)
}

// aclLines reads the lines of a log that are about ACLs.
func aclLines(log io.Reader) ([]string, error) {
	var out []string
	for in := bufio.NewReader(log); ; {
		line, err := in.ReadString('\n')
		if reach.IsACLLine(line) {
			out = append(out, strings.TrimSpace(line))
		}
		switch {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("explain --acl -: standard input has no line about an ACL")
		case err != nil:
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
	}
}
