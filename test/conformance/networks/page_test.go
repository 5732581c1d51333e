package networks

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = repository + "/docs/conformance/networks.md"

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write docs/conformance/networks.md anew")
	flag.Parse()
	os.Exit(m.Run())
}

// TestPage compares the page with the checklist.
func TestPage(t *testing.T) {
	want := markdown(checklist())
	for number, line := range slices.Collect(strings.SplitSeq(want, "\n")) {
		if len(line) > width {
			t.Errorf("line %d has %d bytes, want at most %d: %s", number+1, len(line), width, line)
		}
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != want {
		t.Errorf("%s is not what the checklist says (%v): run `go test -C test ./conformance/networks -update`",
			filepath.Clean(page), err)
	}
}

// width is where a line of the page ends.
const width = 120

const intro = `# Upstream's tests of networks

The end-to-end tests of ovn-kubernetes are a checklist for this project: *Network Segmentation*, *Multi Homing*,
localnet networks and Services, as of August 2026. This page has each of their cases, in our words. It names the test
here that proves the same behaviour, or says why there is none. Upstream's own tests are not run here.

This page is made from [test/conformance/networks](../../test/conformance/networks/doc.go). A test there compares the
two, and checks that all named tests exist. It needs no cluster. This command writes the page anew:

` + "```\ngo test -C test ./conformance/networks -update\n```" + `

A name with a package, such as ` + "`allocate.TestClaim`" + `, is a test of that package, without a cluster. All other
tests of this repository send packets in a cluster. ` + "`Kubernetes`" + ` stands for its own
[specs](../conformance.md) that pass here. A ` + "`*`" + ` in the path of a subtest stands for several, such as one for
each tenant.

*Not tried* means that the code is there, but that no test does just this, with packets where it is about packets.
*Not needed* are means of upstream that its users do not see. One line may stand for several of upstream's cases.

`

// markdown is the page.
func markdown(groups []group) string {
	var b strings.Builder
	b.WriteString(intro)
	counts(&b, groups)
	ids := idsOf(groups)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.title)
		wrapped(&b, "", "Upstream: `"+strings.Join(g.upstream, "`, `")+"`. "+g.note)
		table(&b, g, ids)
		list(&b, g, isUntried, "Served, but not tried", ids)
		list(&b, g, isNotServed, "Not served", ids)
		list(&b, g, isNotNeeded, "Not needed here", ids)
	}
	b.WriteString("\n")
	for _, named := range inOrder(ids) {
		to, isPage := strings.CutPrefix(named.file, "docs/")
		if !isPage {
			to = "../" + named.file
		}
		fmt.Fprintf(&b, "[%s]: ../%s\n", ids[named], to)
	}
	return b.String()
}

// counts is a table of how many cases of each group there are in each state.
func counts(b *strings.Builder, groups []group) {
	b.WriteString("| cases about | proved | not tried | not served | not needed |\n|---|---|---|---|---|\n")
	row := func(title string, of []behaviour) {
		var n [states]int
		for _, c := range of {
			n[c.state]++
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", title, n[isProved], n[isUntried], n[isNotServed], n[isNotNeeded])
	}
	var all []behaviour
	for _, g := range groups {
		row(g.title, g.cases)
		all = append(all, g.cases...)
	}
	row("all", all)
}

// table has the cases of a group that are proved.
func table(b *strings.Builder, g group, ids map[test]string) {
	if !slices.ContainsFunc(g.cases, func(c behaviour) bool { return c.state == isProved }) {
		return
	}
	b.WriteString("\n| case | proved by |\n|---|---|\n")
	for _, c := range g.cases {
		if c.state == isProved {
			rows(b, c, ids)
		}
	}
}

// rows writes a case and its tests in a row, or in a row for each test if one would be too wide.
func rows(b *strings.Builder, c behaviour, ids map[test]string) {
	const row = "| %s | %s |\n"
	if line := fmt.Sprintf(row, c.what, references(c.tests, ids)); len(line) <= width+1 {
		b.WriteString(line)
		return
	}
	what := c.what
	for _, named := range c.tests {
		fmt.Fprintf(b, row, what, references([]test{named}, ids))
		what = ""
	}
}

// list has the cases of a group that are in another state. Cases that follow each other share a note.
func list(b *strings.Builder, g group, s state, title string, ids map[test]string) {
	of := slices.DeleteFunc(slices.Clone(g.cases), func(c behaviour) bool { return c.state != s })
	if len(of) > 0 {
		fmt.Fprintf(b, "\n%s:\n\n", title)
	}
	for len(of) > 0 {
		note := noteOf(of[0].verdict, ids)
		n := slices.IndexFunc(of, func(c behaviour) bool { return noteOf(c.verdict, ids) != note })
		if n < 0 {
			n = len(of)
		}
		if n == 1 {
			wrapped(b, "- ", "**"+of[0].what+"**. "+note)
		} else {
			wrapped(b, "- ", note)
			for _, c := range of[:n] {
				wrapped(b, "  - ", "**"+c.what+"**.")
			}
		}
		of = of[n:]
	}
}

// noteOf says why a case is not proved.
func noteOf(v verdict, ids map[test]string) string {
	text := v.note
	switch {
	case v.page != "":
		name, _, _ := strings.Cut(path.Base(v.page), ".md")
		text += fmt.Sprintf(" See [%s](../%s).", name, v.page)
	case v.state == isNotServed:
		text += " No page says so."
	}
	if len(v.tests) > 0 {
		text += " The nearest test: " + references(v.tests, ids) + "."
	}
	return text
}

// references are links to tests.
func references(tests []test, ids map[test]string) string {
	var out []string
	for _, named := range tests {
		text := "[" + ids[test{named.file, named.name, ""}] + "]"
		if named.subtest != "" {
			text += " `" + named.subtest + "`"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// idsOf is the name of each test function on the page.
func idsOf(groups []group) map[test]string {
	ids := map[test]string{}
	for _, g := range groups {
		for _, c := range g.cases {
			for _, named := range c.tests {
				id := named.name
				if strings.HasPrefix(named.file, "go-controller/") {
					id = path.Base(path.Dir(named.file)) + "." + id
				}
				ids[test{named.file, named.name, ""}] = id
			}
		}
	}
	return ids
}

func inOrder(ids map[test]string) (out []test) {
	for named := range ids {
		out = append(out, named)
	}
	slices.SortFunc(out, func(a, b test) int { return cmp.Compare(ids[a], ids[b]) })
	return out
}

// wrapped writes a text in lines of the width. Further lines are indented as far as the first one begins.
func wrapped(b *strings.Builder, begin, text string) {
	line := begin
	for _, word := range strings.Fields(text) {
		switch {
		case line == begin || strings.TrimSpace(line) == "":
			line += word
		case len(line)+1+len(word) > width:
			fmt.Fprintln(b, line)
			line = strings.Repeat(" ", len(begin)) + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(b, line)
}
