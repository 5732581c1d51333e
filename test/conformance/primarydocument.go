package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox"
)

// PrimaryDocument is the content of docs/conformance/primary-networks.md.
type PrimaryDocument struct {
	Version string // of Kubernetes
	System  sandbox.System
	Beside  Document
	Inside  Document
	Traffic Traffic // of the namespaces beside the specs
}

// PrimaryFile is the path for a PrimaryDocument: in the repository, or in the directory of the results while some specs
// were not run.
func PrimaryFile(repository, work string, complete bool) string {
	const name = "primary-networks.md"
	if !complete {
		return filepath.Join(work, name)
	}
	return filepath.Join(repository, "docs", "conformance", name)
}

// Write writes the document.
func (d PrimaryDocument) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Conformance and primary networks

The same [specs](../conformance.md), of %s, with OVN %s and Open vSwitch %s. They run beside
[primary networks](../features/primary-networks.md), and then inside one. This command does both and writes this page:

`+"```\nmake conformance-primary\n```"+`

It exits with an error if other specs fail than those that are listed: in
[failing.txt](../../test/conformance/failing.txt) beside primary networks, and in
[failing-inside.txt](../../test/conformance/failing-inside.txt) inside one.

`, d.Version, d.System.OVN, d.System.OpenVSwitch)
	d.writeBeside(&b)
	d.writeInside(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

const tableHead = "\n| | all | Conformance |\n|---|---|---|\n"

func (d PrimaryDocument) writeBeside(b *strings.Builder) {
	v := Judge(d.Beside.Selection.Run, d.Beside.Failing, d.Beside.Results)
	b.WriteString(`## Beside primary networks

Two namespaces have primary networks with the same ranges of both families. One network has one switch, the other a
switch for each node. Each has two pods behind a Service with node ports, and a pod that connects to this Service and to
a host outside. The host outside connects to all node ports. They do so over TCP and UDP, by IPv4 and IPv6, again and
again while the specs run.
`)
	b.WriteString(paragraph(fmt.Sprintf("While %d of the specs ran, %s connections were counted: %s.", d.Traffic.Specs,
		thousands(d.Traffic.Connections), answered(d.Traffic.Wrong))))
	b.WriteString(tableHead)
	failed := failedOf(v)
	d.Beside.table(b, v, failed)
	if len(failed) > 0 {
		b.WriteString("\n### Fail beside primary networks\n")
		d.Beside.byReason(b, failed)
	}
	list(b, "\n### Not run yet beside primary networks\n", v.Missing)
}

func (d PrimaryDocument) writeInside(b *strings.Builder) {
	v := Judge(d.Inside.Selection.Run, d.Inside.Failing, d.Inside.Results)
	b.WriteString(`
## Inside a primary network

All namespaces that the specs make are in one primary network of both families, with one switch. The API server gives
them the label when they are made. Everything else is as always: the nodes, cluster DNS, and namespaces that the specs
do not make.

Many of the specs that fail use a pod's ` + "`status.podIP`" + `. That is an address of eth0, which is closed by
[design](../features/primary-networks.md#who-reaches-whom).
`)
	b.WriteString(tableHead)
	failed := failedOf(v)
	d.Inside.table(b, v, failed)
	if len(failed) > 0 {
		b.WriteString("\n### Fail inside a primary network\n")
		d.Inside.byReason(b, failed)
	}
	list(b, "\n### Pass inside a primary network\n", v.Passed)
	list(b, "\n### Not run yet inside a primary network\n", v.Missing)
}

// failedOf is the specs that failed, in order.
func failedOf(v Verdict) []string {
	return slices.Sorted(slices.Values(slices.Concat(v.Failing, v.Broken)))
}

// byReason writes the failed specs, those with the same reason together.
func (d Document) byReason(b *strings.Builder, failed []string) {
	specs := map[string][]string{}
	for _, name := range failed {
		reason, known := d.Failing[name]
		if !known {
			reason = "not looked into: " + oneLine(d.Results[name].Message)
		}
		specs[reason] = append(specs[reason], name)
	}
	mostFirst := func(a, b string) int {
		return cmp.Or(cmp.Compare(len(specs[b]), len(specs[a])), strings.Compare(a, b))
	}
	for _, reason := range slices.SortedFunc(maps.Keys(specs), mostFirst) {
		list(b, paragraph(fmt.Sprintf("%s (%d):", reason, len(specs[reason]))), specs[reason])
	}
}

// list writes specs under a heading, or nothing if there are none.
func list(b *strings.Builder, heading string, specs []string) {
	if len(specs) == 0 {
		return
	}
	b.WriteString(heading + "\n")
	for _, name := range specs {
		item(b, short(name))
	}
}

// paragraph is a text in lines of the document's width, after an empty line.
func paragraph(text string) string {
	var b strings.Builder
	item(&b, text)
	return "\n" + strings.ReplaceAll(strings.TrimPrefix(b.String(), "- "), "\n  ", "\n")
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func answered(wrong int) string {
	if wrong == 0 {
		return "all were answered, each by the host that was asked or a pod of the right namespace"
	}
	return thousands(wrong) + " got no answer, or one of another namespace"
}
