package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

const referencePage = "../../../docs/reference/kubectl-northbound.md"

// update is the flag -update, which writes the page anew.
var update = flag.Bool("update", false, "write "+referencePage) //nolint:gochecknoglobals // a flag of the test

// The reference page says what --help says.
func TestReference(t *testing.T) {
	want := page()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referencePage)
	if err != nil || string(have) != want {
		t.Errorf("%s is out of date (%v): run the test with -update", referencePage, err)
	}
}

// page lists every command.
func page() string {
	app := newApp()
	var b strings.Builder
	b.WriteString("# Reference: kubectl northbound\n\n" +
		"This page is generated from the code. To write it anew:\n\n" +
		"```\ngo test ./go-controller/cmd/kubectl-northbound -run TestReference -update\n```\n\n" +
		"[Ask a cluster from a laptop](../operate/kubectl.md) explains the commands.\n\n## Flags\n\n`" +
		app.UsageText + "`\n\n")
	writeFlags(&b, app.Flags)
	for _, c := range app.Commands {
		b.WriteString("\n## " + c.Name + "\n\n")
		if c.UsageText != "" {
			b.WriteString("`" + c.UsageText + "`\n\n")
		}
		b.WriteString(wrap("", strings.ToUpper(c.Usage[:1])+c.Usage[1:]+"."))
		text, examples, _ := strings.Cut(c.Description, "Examples:\n")
		for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
			for _, line := range strings.Split(paragraph, "\n") {
				b.WriteString("\n" + wrap("", line))
			}
		}
		if examples != "" {
			b.WriteString("\n```text\n" + strings.TrimPrefix(strings.ReplaceAll(examples, "\n   ", "\n"), "   ") + "\n```\n")
		}
		if len(c.Flags) > 0 {
			b.WriteString("\n")
			writeFlags(&b, c.Flags)
		}
	}
	return b.String()
}

func writeFlags(b *strings.Builder, flags []cli.Flag) {
	for _, f := range flags {
		name, usage, _ := strings.Cut(f.String(), "\t")
		b.WriteString(wrap("  ", "- `"+name+"`: "+usage))
	}
}

// wrap breaks text into lines of 120 characters. All but the first begin with indent.
func wrap(indent, text string) string {
	var out strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > 120:
			out.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return out.String() + line + "\n"
}

// The help of every command has examples, each of which is of that command.
func TestHelpHasExamples(t *testing.T) {
	for _, c := range newApp().Commands {
		help, stderr, code := run(t, c.Name, "--help")
		_, examples, found := strings.Cut(help, "Examples:\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		lines := strings.Split(strings.TrimSpace(examples), "\n")
		if code != 0 || !found {
			t.Errorf("%s --help has no examples: exit code %d, %s\n%s", c.Name, code, stderr, help)
			continue
		}
		for _, line := range lines {
			words := strings.Fields(line)
			if !strings.HasPrefix(strings.TrimSpace(line), "kubectl northbound ") || !slices.Contains(words[2:], c.Name) {
				t.Errorf("%s --help has the example %q", c.Name, line)
			}
		}
	}
}

// Examples of tools whose arguments this program passes on are accepted on the other end.
func TestExamples(t *testing.T) {
	for _, tool := range diagnostics.Tools() {
		for _, example := range examples()[tool.Name] {
			if special()[tool.Name] != nil {
				continue
			}
			command, _, _ := strings.Cut(example, " > ")
			args, ok := strings.CutPrefix(command, tool.Name)
			words := strings.Fields(args)
			if ok && tool.Place == diagnostics.Node {
				words = words[1:] // the node
			}
			if _, err := tool.Command(words); !ok || err != nil {
				t.Errorf("%s: the example %q: %v", tool.Name, example, err)
			}
		}
	}
	if page, stderr, code := run(t, "man"); code != 0 || !strings.Contains(page, "\n.TH kubectl-northbound 1") ||
		!strings.Contains(strings.ReplaceAll(page, `\-`, "-"), "kubectl northbound [FLAGS] vsctl NODE COMMAND") {
		t.Errorf("the manual page: exit code %d, %s\n%s", code, stderr, page)
	}
}
