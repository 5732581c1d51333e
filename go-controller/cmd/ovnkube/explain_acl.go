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

// explainACL explains the line of --acl, or those of standard input.
func explainACL(c *cli.Context) error {
	write, err := printer(c, asText)
	if err != nil {
		return err
	}
	broken, err := reachable(c, func(r *reach.Cluster) error {
		if line := c.String("acl"); line != "-" {
			return explainLine(r, line, write)
		}
		return explainLog(c, r, write)
	})
	return errors.Join(err, broken)
}

func explainLine(r *reach.Cluster, line string, write func(printable) error) error {
	x, err := r.Logged(line)
	if err != nil {
		return err
	}
	return write(x)
}

// explainLog explains the lines of a log on standard input that are about ACLs, each as soon as it is read. It counts
// those that are of no policy: anybody may log something about ACLs of their own.
func explainLog(c *cli.Context, r *reach.Cluster, write func(printable) error) error {
	lines, foreign := 0, 0
	for in := bufio.NewReaderSize(c.App.Reader, mostLine); ; {
		line, end := readLine(in)
		if reach.IsACLLine(line) {
			lines++
			switch err := explainLine(r, line, write); {
			case errors.Is(err, reach.ErrNoPolicyLine):
				foreign++
			case err != nil:
				return err
			}
		}
		if end != nil {
			if foreign > 0 {
				fmt.Fprintf(c.App.ErrWriter, "%d of %d lines about ACLs are left out: of no policy, or damaged\n", foreign, lines)
			}
			return logEnd(end, lines)
		}
	}
}

// logEnd is the error of a log that ends with err.
func logEnd(err error, lines int) error {
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading standard input: %w", err)
	case lines == 0:
		return errors.New("explain --acl -: standard input has no line about an ACL")
	}
	return nil
}

// mostLine is how many bytes of a line are read. ovn-controller's lines about ACLs have less than 1,000.
const mostLine = 64 << 10

// readLine reads a line, of which it returns no more than mostLine bytes. An error comes with the last line.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	out := strings.TrimSpace(string(line))
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return out, fmt.Errorf("reading a line: %w", err)
	}
	return out, err
}
