package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/metrics"
)

// repository is the root directory of the project.
const repository = "../../.."

const referenceDir = repository + "/docs/reference"

// pageWidth is where a line of a generated page ends.
const pageWidth = 120

// generated begins each generated page, after its heading.
const generated = "This page is generated from the code. To write it anew:\n\n" +
	"```\ngo test ./go-controller/cmd/ovnkube -run TestReference -update\n```\n\n"

// The reference pages say what the code says.
func TestReference(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "") // it changes a default
	for name, page := range map[string]func(t *testing.T) string{
		"ovnkube.md":     commandsPage,
		"metrics.md":     metricsPage,
		"annotations.md": annotationsPage,
		"rows.md":        rowsPage,
		"log.md":         logPage,
	} {
		t.Run(name, func(t *testing.T) {
			want, file := page(t), filepath.Join(referenceDir, name)
			if update() {
				if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			have, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != want {
				t.Errorf("docs/reference/%s is out of date: run the test with -update", name)
			}
		})
	}
}

// wrap breaks text into lines of pageWidth. The first line begins with first,
// the others with rest. A word that is longer stays whole.
func wrap(first, rest, text string) string {
	var b strings.Builder
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > pageWidth {
			b.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + line + "\n"
}

// commandsPage lists every subcommand with its flags.
func commandsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference: ovnkube, its commands and flags\n\n" + generated +
		wrap("", "", "A flag is given as `--flag VALUE` or `--flag=VALUE`. A flag without a value below is a switch: "+
			"naming it turns it on. An environment variable sets the same value; the flag wins. "+
			"A command that has `--config-file` also reads [the settings file](#the-settings-file-and-the-open_vswitch-row). "+
			"[Where settings come from](../operate/by-hand.md#where-settings-come-from) says which source counts."))
	for _, c := range newApp().Commands {
		if !c.Hidden {
			describe(t, &b, []string{c.Name}, c)
		}
	}
	b.WriteString("\n## The settings file and the Open_vSwitch row\n\n" +
		"| flag | in the file | Open_vSwitch row, `external_ids:` |\n|---|---|---|\n")
	for _, s := range allSettings() {
		row := ""
		if s.ovs != "" {
			row = "`" + s.ovs + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | `[%s] %s` | %s |\n", s.flag, s.section, s.key, row)
	}
	return b.String()
}

// describe writes a command and its subcommands.
func describe(t *testing.T, b *strings.Builder, path []string, c *cli.Command) {
	if len(path) == 1 && len(c.Subcommands) > 0 {
		if c.UsageText != "" { // it does something without a subcommand, too
			page(t, b, path, c)
		}
		for _, sub := range c.Subcommands {
			both := []string{c.Name, sub.Name}
			describe(t, b, both, helpOf(t, both))
		}
		return
	}
	page(t, b, path, c)
}

// page writes a command.
func page(t *testing.T, b *strings.Builder, path []string, c *cli.Command) {
	name := strings.Join(path, " ")
	b.WriteString("\n## " + name + "\n\n`ovnkube " + name)
	if len(c.VisibleFlags()) > 0 {
		b.WriteString(" [FLAG...]")
	}
	if c.ArgsUsage != "" {
		b.WriteString(" " + c.ArgsUsage)
	}
	b.WriteString("`\n\n" + wrap("", "", sentence(c.Usage)))
	if c.Description != "" {
		for _, paragraph := range strings.Split(c.Description, "\n\n") {
			if lines, ok := strings.CutPrefix(paragraph, examplesHeading); ok {
				b.WriteString("\n```text\n" + strings.ReplaceAll(strings.TrimPrefix(lines, "   "), "\n   ", "\n") + "\n```\n")
				continue
			}
			b.WriteString("\n" + wrap("", "", sentence(paragraph)))
		}
	}
	byName := func(f, g cli.Flag) int { return strings.Compare(f.Names()[0], g.Names()[0]) }
	flags := slices.SortedFunc(slices.Values(c.Flags), byName)
	var texts []string
	for _, f := range flags {
		if text := flagText(t, f); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		b.WriteString("\n" + strings.Join(texts, ""))
	}
}

// helpOf is the command whose help is printed when it is asked for. A command
// that takes its flags anywhere shows them only there.
func helpOf(t *testing.T, path []string) *cli.Command {
	t.Helper()
	var found *cli.Command
	printer := cli.HelpPrinter
	defer func() { cli.HelpPrinter = printer }()
	cli.HelpPrinter = func(_ io.Writer, _ string, data any) {
		if c, ok := data.(*cli.Command); ok {
			found = c
		}
	}
	if out := ovnkube(t.Context(), nil, append(path, "--help")...); out.exit != 0 || found == nil {
		t.Fatalf("asking `ovnkube %s` for help: %v", strings.Join(path, " "), out)
	}
	return found
}

// flagText is a list item for a flag, "" for one that is hidden or that every
// command has.
func flagText(t *testing.T, f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		t.Fatalf("flag %v can't be described", f.Names())
	}
	if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() || slices.Contains(f.Names(), "help") {
		return ""
	}
	value, usage := placeholder(d)
	var names []string
	for _, n := range f.Names() {
		dashes := "--"
		if len(n) == 1 {
			dashes = "-"
		}
		names = append(names, "`"+strings.TrimSpace(dashes+n+" "+value)+"`")
	}
	text := strings.Join(names, ", ") + ": " + sentence(usage)
	switch def := strings.Trim(d.GetDefaultText(), `"`); {
	case !d.TakesValue() && def == "true":
		text += " On by default: `--" + f.Names()[0] + "=false` turns it off."
	case !d.TakesValue() || def == "" || def == "0":
	case strings.Contains(def, " "):
		text += " Default: " + def + "."
	default:
		text += " Default: `" + def + "`."
	}
	if env := d.GetEnvVars(); len(env) > 0 {
		text += " Environment: `" + strings.Join(env, "`, `") + "`."
	}
	return wrap("- ", "  ", text)
}

// placeholder is what stands for a flag's value, and the usage with the value as
// plain text.
func placeholder(d cli.DocGenerationFlag) (value, usage string) {
	before, rest, _ := strings.Cut(d.GetUsage(), "`")
	name, after, quoted := strings.Cut(rest, "`")
	switch {
	case !d.TakesValue():
		return "", d.GetUsage()
	case !quoted:
		return "VALUE", d.GetUsage()
	}
	if strings.HasPrefix(after, ",...") {
		return name + ",...", before + name + after
	}
	return name, before + name + after
}

// sentence is text with a capital letter at its beginning and a full stop at
// its end.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// metricsPage lists the metrics that the daemons register.
func metricsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Reference: metrics\n\n" + generated + wrap("", "", "Prometheus reads them at `/metrics` of "+
		"`--metrics-bind-address`. The Go runtime's own metrics are served there, too."))
	for _, daemon := range []struct {
		name, address string
		register      func(prometheus.Registerer)
	}{
		{"ovnkube master", "127.0.0.1:9409", func(r prometheus.Registerer) { metrics.NewMaster(r) }},
		{"ovnkube node", "127.0.0.1:9410", func(r prometheus.Registerer) { metrics.NewNode(r) }},
		{"ovnkube database maintain", "127.0.0.1:9411", func(r prometheus.Registerer) { metrics.NewDatabase(r) }},
	} {
		b.WriteString("\n## " + daemon.name + "\n\nServed at `" + daemon.address + "` by default.\n\n")
		var items []string
		daemon.register(collect{func(c prometheus.Collector) { items = append(items, metricText(t, c)) }})
		slices.Sort(items)
		b.WriteString(strings.Join(items, ""))
	}
	return b.String()
}

// collect is a registry that hands on what is registered.
type collect struct{ each func(prometheus.Collector) }

func (c collect) Register(x prometheus.Collector) error { c.each(x); return nil }
func (c collect) MustRegister(xs ...prometheus.Collector) {
	for _, x := range xs {
		c.each(x)
	}
}
func (c collect) Unregister(prometheus.Collector) bool { return false }

// metricText is a list item for a metric: what a registry gathers of it once it
// has a value.
func metricText(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	give(t, c)
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("gathering %T: %d families, %v", c, len(families), err)
	}
	f := families[0]
	var labels []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		labels = append(labels, l.GetName())
	}
	name := f.GetName()
	if len(labels) > 0 {
		name += "{" + strings.Join(labels, ",") + "}"
	}
	kind := strings.ToLower(f.GetType().String())
	return wrap("- ", "  ", fmt.Sprintf("`%s` (%s): %s", name, kind, f.GetHelp()))
}

// give gives a metric with labels a value. Without one there is nothing to
// gather.
func give(t *testing.T, c prometheus.Collector) {
	t.Helper()
	for n := range 5 {
		values := make([]string, n)
		var err error
		switch v := c.(type) {
		case *prometheus.CounterVec:
			_, err = v.GetMetricWithLabelValues(values...)
		case *prometheus.GaugeVec:
			_, err = v.GetMetricWithLabelValues(values...)
		case *prometheus.HistogramVec:
			_, err = v.GetMetricWithLabelValues(values...)
		case *metrics.Totals:
			v.Set(map[string]float64{"": 0})
		}
		if err == nil {
			return
		}
	}
	t.Fatalf("%T has more labels than expected", c)
}
