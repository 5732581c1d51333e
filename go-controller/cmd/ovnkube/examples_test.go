package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestExamples wants an example of every command that people type, and no flag in it that the command does not have.
func TestExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, e := range examples() {
		words := strings.Fields(e)
		c := newApp().Command(words[0])
		if c == nil {
			t.Errorf("example %q is of no command", e)
			continue
		}
		path := words[0]
		inner := helpOf(t, []string{path})
		if sub := subcommand(c, words); sub != nil {
			path += " " + sub.Name
			if c.Name != "explain" {
				inner = helpOf(t, strings.Fields(path))
			}
		}
		shown[strings.Fields(path)[0]], shown[path] = true, true
		for _, w := range words {
			name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
			others := c.Name == "tcpdump" || c.Name == "man" || c.Name == "explain" && name == "n" // of tools and subcommands
			if len(name) > 0 && strings.HasPrefix(w, "-") && !others && !hasFlagNamed(inner, name) {
				t.Errorf("example %q: %s has no flag %s", e, path, w)
			}
		}
	}
	for _, c := range newApp().Commands {
		if c.Hidden || c.Name == "explain" {
			continue
		}
		if !shown[c.Name] {
			t.Errorf("no example of %s", c.Name)
		}
		for _, sub := range c.Subcommands {
			if path := c.Name + " " + sub.Name; !shown[path] {
				t.Errorf("no example of %s", path)
			}
		}
	}
}

func subcommand(c *cli.Command, words []string) *cli.Command {
	for _, sub := range c.Subcommands {
		if len(words) > 1 && words[1] == sub.Name {
			return sub
		}
	}
	return nil
}

func hasFlagNamed(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}
