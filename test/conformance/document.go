package conformance

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox"
)

// Verdict is the result of a run about the product and about the lists.
type Verdict struct {
	Passed, Failing, Skipped []string // Failing are known failures that failed
	Broken                   []string // failed, but not known to fail
	Mended                   []string // passed, but known to fail
	Missing                  []string // not run
}

// Judge compares results with the known failures.
func Judge(run []string, failing map[string]string, results Results) Verdict {
	var v Verdict
	for _, name := range run {
		r, ran := results[name]
		_, known := failing[name]
		switch {
		case !ran:
			v.Missing = append(v.Missing, name)
		case r.State == Skipped:
			v.Skipped = append(v.Skipped, name)
		case r.State == Failed && known:
			v.Failing = append(v.Failing, name)
		case r.State == Failed:
			v.Broken = append(v.Broken, name)
		default:
			v.Passed = append(v.Passed, name)
			if known {
				v.Mended = append(v.Mended, name)
			}
		}
	}
	return v
}

// Err returns what is wrong, or nil if exactly the known failures failed.
func (v Verdict) Err() error {
	var lines []string
	for what, names := range map[string][]string{
		"failed and isn't in failing.txt": v.Broken, "passed and is in failing.txt": v.Mended,
	} {
		for _, n := range names {
			lines = append(lines, what+": "+n)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return fmt.Errorf("the results aren't as expected:\n%s", strings.Join(lines, "\n"))
}

// File is the path for the document: docs/conformance.md of the repository, or docs/conformance/chart.md for a cluster
// of the Helm chart. While some specs were not run, it is conformance.md in the directory of the results.
func (v Verdict) File(repository, work string, chart bool) string {
	if len(v.Missing) > 0 {
		return filepath.Join(work, "conformance.md")
	}
	if chart {
		return filepath.Join(repository, "docs", "conformance", "chart.md")
	}
	return filepath.Join(repository, "docs", "conformance.md")
}

// Document is the content of docs/conformance.md, or of docs/conformance/chart.md.
type Document struct {
	Chart     bool   // the cluster was installed by the Helm chart
	Version   string // of Kubernetes
	System    sandbox.System
	Selection Selection
	Failing   map[string]string // with this system: the reason by spec
	Older     map[string]string // with an older OVN only
	Results   Results
}

// clusterPolicySection is about other tests, which write a report of their own.
const clusterPolicySection = `
## ClusterNetworkPolicies

The API of [cluster policies](features/cluster-policy.md) has conformance tests of its own: those of
` + "`sigs.k8s.io/network-policy-api`" + ` v0.2.0, for the features of its standard and its experimental channel.
They run on such a sandbox, too. This command runs them, and writes the tests' own
[report](conformance/clusternetworkpolicy.yaml):

` + "```\nmake conformance-cnp\n```" + `

All 24 tests, with 92 subtests, pass. They connect to the first address of each pod, which is of IPv4. Where the kernel
has no SCTP, the image of the tests has one in user space.
`

// chartSuites is about tests of this repository, on clusters of the chart.
const chartSuites = `
## The end-to-end tests

Tests of this repository run on clusters of the chart, too. The second command does so for gateways, Services, policies
and attacks:

` + "```" + `
SANDBOX_INSTALL=chart go test -C test -p 1 ./e2e
make chart-suites
` + "```" + `

None of these tests is left out there, and all have passed, though not in one run. Some do a thing in another way, since
the kubelet starts a program of a pod again:

| test | with processes | on a cluster of the chart |
|---|---|---|
| an ovn-controller of a gateway fails | it is killed, and started later | it gets SIGSTOP, and later SIGCONT |
| a gateway by hand | the node's agent is stopped | another program takes the agent's place in its pod |
| another gateway, and none | other flags of the agent | a label of the Node |
| a master dies | it is killed, and started | it is killed, and its pod is deleted, so that a new one starts at once |

` + "`test/e2e/encap`" + ` is not run there: it gives agents tunnels that contradict the chart's master.
` + "`test/e2e/chart`" + ` changes the tunnels of such a cluster instead.
`

// Write writes the document.
func (d Document) Write(w io.Writer) error {
	if d.Chart {
		return d.writeChart(w)
	}
	v := Judge(d.Selection.Run, d.Failing, d.Results)
	failed := slices.Sorted(slices.Values(slices.Concat(v.Failing, v.Broken)))
	var b strings.Builder
	fmt.Fprintf(&b, `# Conformance

Kubernetes' own end-to-end tests of networking: `+"`%s`"+` of %s,
with OVN %s and Open vSwitch %s.

They run on a sandbox of three dual-stack nodes, six for those of Traffic Distribution. All nodes are gateways, and
there is no kube-proxy. This command runs them and writes this page:

`+"```\nmake conformance\n```"+`

It exits with an error if a spec fails that [failing.txt](../test/conformance/failing.txt) does not list, or if a listed
one passes. [exclude.txt](../test/conformance/exclude.txt) names the specs that are left out, and why.

It takes 20 to 26 minutes, so it is not part of `+"`make test`"+`. `+
		`It uses the newest OVN that Debian has, if a mirror of
it can be reached, and else that of Debian 13. To use Debian 13's in any case:
`+"`make conformance CONFORMANCE='--ovn rootfs'`"+`.

| | all | Conformance |
|---|---|---|
`, SIG, d.Version, d.System.OVN, d.System.OpenVSwitch)
	d.table(&b, v, failed)
	b.WriteString("\nThe same specs on a cluster of the Helm chart: [results](conformance/chart.md). " +
		"Beside primary networks, and inside\none: [results](conformance/primary-networks.md).\n")
	b.WriteString(clusterPolicySection)
	d.failures(&b, failed)
	section(&b, "Fail with an older OVN only", slices.Sorted(maps.Keys(d.Older)), func(name string) string {
		return d.Older[name]
	})
	section(&b, "Skip themselves", v.Skipped, func(name string) string { return oneLine(d.Results[name].Message) })
	section(&b, "Not run yet", v.Missing, nil)
	section(&b, "Pass", v.Passed, nil)
	fmt.Fprintf(&b, "\n## Excluded\n")
	for _, reason := range slices.Sorted(maps.Keys(d.Selection.Excluded)) {
		fmt.Fprintf(&b, "\n%s (%d):\n\n", reason, len(d.Selection.Excluded[reason]))
		for _, name := range d.Selection.Excluded[reason] {
			item(&b, short(name))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table ends the table of counts.
func (d Document) table(b *strings.Builder, v Verdict, failed []string) {
	row := func(what string, names []string) {
		fmt.Fprintf(b, "| %s | %d | %d |\n", what, len(names), conformance(names))
	}
	row("pass", v.Passed)
	row("fail", failed)
	row("skip themselves", v.Skipped)
	if len(v.Missing) > 0 {
		row("not run yet", v.Missing)
	}
	row("excluded", slices.Concat(slices.Collect(maps.Values(d.Selection.Excluded))...))
}

// writeChart writes the document about a cluster of the Helm chart. It names only what does not pass.
func (d Document) writeChart(w io.Writer) error {
	v := Judge(d.Selection.Run, d.Failing, d.Results)
	failed := slices.Sorted(slices.Values(slices.Concat(v.Failing, v.Broken)))
	var b strings.Builder
	fmt.Fprintf(&b, `# Conformance of the Helm chart

The same [specs](../conformance.md), of %s, with OVN %s and Open vSwitch %s. OVN's databases,
masters, ovn-controllers and agents are pods of the [chart](../operate/install.md). There is one node more, which is for
the control plane and has kubeadm's taint. This command runs the specs and writes this page:

`+"```\nSANDBOX_INSTALL=chart make conformance\n```"+`

| | all | Conformance |
|---|---|---|
`, d.Version, d.System.OVN, d.System.OpenVSwitch)
	d.table(&b, v, failed)
	d.failures(&b, failed)
	section(&b, "Skip themselves", v.Skipped, func(name string) string { return oneLine(d.Results[name].Message) })
	section(&b, "Not run yet", v.Missing, nil)
	b.WriteString(chartSuites)
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Document) failures(b *strings.Builder, failed []string) {
	section(b, "Fail", failed, func(name string) string {
		if reason, ok := d.Failing[name]; ok {
			return reason
		}
		return "not looked into: " + oneLine(d.Results[name].Message)
	})
}

// section writes a heading and a list of specs, each with a remark. It writes nothing without specs.
func section(b *strings.Builder, title string, names []string, remark func(string) string) {
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, name := range names {
		text := short(name)
		if remark != nil {
			text += ": " + remark(name)
		}
		item(b, text)
	}
}

// width is where a line of the document ends.
const width = 120

// item is an item of a list, in lines of that width.
func item(b *strings.Builder, text string) {
	line := "-"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			fmt.Fprintln(b, line)
			line = " "
		}
		line += " " + word
	}
	fmt.Fprintln(b, line)
}

// short is a spec's name without what all have; its tags are no links.
func short(name string) string {
	name = strings.TrimPrefix(name, SIG+" ")
	return strings.NewReplacer("[", `\[`, "]", `\]`).Replace(name)
}

// conformance counts the specs that every conformant cluster must pass.
func conformance(names []string) int {
	n := 0
	for _, name := range names {
		if isConformance(name) {
			n++
		}
	}
	return n
}

// oneLine returns the beginning of a message.
func oneLine(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if len(first) > 200 {
		first = first[:200] + "..."
	}
	return first
}
