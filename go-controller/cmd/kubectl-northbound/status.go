package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// exitProblems is the exit code when something is not as it should be.
const exitProblems = 2

// lookAgain is how often `status --wait` asks.
const lookAgain = 2 * time.Second

func statusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", HideHelpCommand: true, UsageText: "kubectl northbound [FLAGS] status [OPTIONS]",
		Usage: "list masters, databases and nodes, who leads, what is wrong, and what to type",
		Description: "Exit code 0: all is well; 2: problems; 1: something could not be asked.\n\n" +
			"Examples:\n   kubectl northbound status\n   kubectl northbound status --wait --timeout 5m",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "`FORMAT`: table, json or yaml"},
			&cli.BoolFlag{Name: "wait", Usage: "wait until all is well"},
			&cli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "`DURATION` to wait at most"},
		},
		Action: runStatus,
	}
}

func runStatus(c *cli.Context) error {
	if c.NArg() > 0 {
		return fmt.Errorf("status: unexpected argument %q", c.Args().First())
	}
	write := map[string]func(io.Writer, []remote.Component) error{"table": table, "json": asJSON[[]remote.Component],
		"yaml": asYAML[[]remote.Component]}[c.String("output")]
	if write == nil {
		return fmt.Errorf("--output %q: want table, json or yaml", c.String("output"))
	}
	s, err := session(c)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(c.Duration("timeout")); ; {
		all, err := s.Status(c.Context)
		bad := problems(all)
		if err == nil && len(bad) == 0 || remote.Forbidden(err) || !c.Bool("wait") || time.Now().After(deadline) {
			if len(all) > 0 {
				err = errors.Join(err, write(c.App.Writer, all))
			}
			if err == nil && len(bad) == 0 && c.String("output") == "table" {
				_, err = fmt.Fprintln(c.App.Writer, "\nAll is well.")
			}
			if err == nil && len(bad) > 0 {
				return cli.Exit("", exitProblems)
			}
			return err
		}
		select {
		case <-c.Done():
			return c.Err()
		case <-time.After(lookAgain):
		}
	}
}

func problems(all []remote.Component) (out []remote.Component) {
	for _, c := range all {
		if !c.Ready {
			out = append(out, c)
		}
	}
	return out
}

// table is a line for each component, and then what is wrong.
func table(w io.Writer, all []remote.Component) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COMPONENT\tNODE\tREADY\tROLE\tSIZE")
	for _, c := range all {
		state := "yes"
		if !c.Ready {
			state = "NO"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Name, or(c.Node), state, or(c.Role), or(sizes(c.Bytes)))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, c := range problems(all) {
		if _, err := fmt.Fprintf(w, "\n%s %s: %s\n  try: %s\n", c.Name, or(c.Node), c.Problem, c.Try); err != nil {
			return err
		}
	}
	return nil
}

// sizes are the sizes of databases' files, such as "nb 39 kB, sb 1.2 MB".
func sizes(bytes map[string]int64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(bytes)) {
		size := fmt.Sprintf("%.1f MB", float64(bytes[name])/1e6)
		if bytes[name] < 1e6 {
			size = fmt.Sprintf("%d kB", bytes[name]/1e3)
		}
		out = append(out, name+" "+size)
	}
	return strings.Join(out, ", ")
}

// or is text, or a dash.
func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func asJSON[T any](w io.Writer, all T) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(all)
}

func asYAML[T any](w io.Writer, all T) error {
	raw, err := yaml.Marshal(all)
	if err != nil {
		return fmt.Errorf("encoding YAML: %w", err)
	}
	_, err = w.Write(raw)
	return err
}
