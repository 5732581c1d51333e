package conformance

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/sandbox"
)

const (
	mandatory = "[sig-network] Services should serve [Conformance]"
	extra     = "[sig-network] Services should hairpin"
	alone     = "[sig-network] DNS should be configured [Serial]"
	cloud     = "[sig-network] LoadBalancers [Feature:LoadBalancer] should work"
)

func lists(t *testing.T, exclude, failing string) (Lists, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"exclude": exclude, "failing": failing} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ReadLists(filepath.Join(dir, "exclude"), filepath.Join(dir, "failing"))
}

func TestSelect(t *testing.T) {
	l, err := lists(t, "# a remark\n\\[Feature:LoadBalancer\\] -- needs a cloud\n", extra+" -- a bug\n")
	if err != nil {
		t.Fatal(err)
	}
	have, err := l.Select([]string{alone, cloud, extra, mandatory})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{mandatory, extra, alone}; !slices.Equal(have.Run, want) {
		t.Errorf("to run: %q, want %q: mandatory ones first, those that run alone last", have.Run, want)
	}
	if want := []string{cloud}; len(have.Excluded) != 1 || !slices.Equal(have.Excluded["needs a cloud"], want) {
		t.Errorf("excluded: %q, want %q because of the cloud", have.Excluded, want)
	}
	for name, specs := range map[string][]string{
		"exclusion":     {extra},
		"known failure": {cloud},
	} {
		if _, err := l.Select(specs); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Select(%q): %v, want that the %s is out of date", specs, err, name)
		}
	}
}

func TestExpected(t *testing.T) {
	o := Options{Failing: map[string]string{"known": "a bug"}}
	for _, c := range []struct {
		spec, state string
		want        bool
	}{
		{"good", Passed, true}, {"good", Failed, false}, {"good", Skipped, false}, {"good", "", false},
		{"known", Failed, true}, {"known", Passed, false}, {"known", "", false},
	} {
		if have := o.expected(c.spec, Result{State: c.state}); have != c.want {
			t.Errorf("%s %q: expected %v, want %v", c.spec, c.state, have, c.want)
		}
	}
}

func TestBadLists(t *testing.T) {
	for _, c := range []struct{ exclude, failing, want string }{
		{"\\[Slow\\]\n", "", `line 1: "\\[Slow\\]": want ` + "`WHAT -- REASON`"},
		{"ok -- why\n( -- why\n", "", "line 2: error parsing regexp"},
		{"", extra + " -- a\n" + extra + " -- b\n", "line 2: spec \"" + extra + "\" is listed twice"},
		{"", extra + " -- since OVN 26.03 -- a\n",
			"line 1: \"since OVN 26.03\": want `SPEC -- REASON`, `SPEC -- before OVN RELEASE -- REASON` or "},
		{"", extra + " -- before OVN new -- a\n", "line 1: parsing OVN's version \"new\": want one such as 26.03"},
	} {
		if _, err := lists(t, c.exclude, c.failing); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ReadLists(%q, %q): %v, want %q in it", c.exclude, c.failing, err, c.want)
		}
	}
}

// TestKnown checks that a failure is known only for the OVN releases that it names.
func TestKnown(t *testing.T) {
	l, err := lists(t, "", extra+" -- before OVN 26.03 -- a bug of OVN\n"+alone+" -- a bug\n")
	if err != nil {
		t.Fatal(err)
	}
	const old = "before OVN 26.03: a bug of OVN"
	for version, want := range map[string][2]map[string]string{
		"23.03.1":    {{extra: old, alone: "a bug"}, {}},
		"25.09":      {{extra: old, alone: "a bug"}, {}},
		"26.03":      {{alone: "a bug"}, {extra: old}},
		"26.03.1~rc": {{alone: "a bug"}, {extra: old}},
		"27.03.0":    {{alone: "a bug"}, {extra: old}},
	} {
		ovn, err := sandbox.ParseRelease(version)
		if err != nil {
			t.Fatal(err)
		}
		if now, older := l.Known(ovn, false); !maps.Equal(now, want[0]) || !maps.Equal(older, want[1]) {
			t.Errorf("with OVN %s (%s): now %v, older %v, want %v", version, ovn, now, older, want)
		}
	}
}

// TestKnownWithChart knows failures of a cluster of the chart there only.
func TestKnownWithChart(t *testing.T) {
	f, err := failure("with the chart -- why")
	if err != nil || !f.Chart || f.Reason != "why" {
		t.Fatalf("failure: %+v, %v", f, err)
	}
	l := Lists{Failing: map[string]Failure{"spec": f}}
	for _, chart := range []bool{false, true} {
		now, older := l.Known(nil, chart)
		if len(older) > 0 || (now["spec"] == "why") != chart || len(now) > 1 {
			t.Errorf("Known, chart %t: %v and %v", chart, now, older)
		}
	}
}

func TestJudge(t *testing.T) {
	known := map[string]string{"known": "a bug", "mended": "a bug"}
	all := []string{"good", "known", "new", "mended", "other", "absent"}
	v := Judge(all, known, Results{
		"good": {State: Passed}, "known": {State: Failed}, "new": {State: Failed}, "mended": {State: Passed},
		"other": {State: Skipped},
	})
	for _, c := range []struct {
		what string
		have []string
		want string
	}{
		{"passed", v.Passed, "good mended"}, {"failing", v.Failing, "known"}, {"broken", v.Broken, "new"},
		{"mended", v.Mended, "mended"}, {"skipped", v.Skipped, "other"}, {"missing", v.Missing, "absent"},
	} {
		if have := strings.Join(c.have, " "); have != c.want {
			t.Errorf("%s: %q, want %q", c.what, have, c.want)
		}
	}
	if have := v.File("/r", "/w", false); have != "/w/conformance.md" {
		t.Errorf("with a spec that was not run it is written to %s", have)
	}
	if have := (Verdict{Passed: v.Passed}).File("/r", "/w", true); have != "/r/docs/conformance/chart.md" {
		t.Errorf("File of a cluster of the chart: %s, want /r/docs/conformance/chart.md", have)
	}
	if have := (Verdict{Passed: v.Passed, Broken: v.Broken}).File("/r", "/w", false); have != "/r/docs/conformance.md" {
		t.Errorf("when all were run it is written to %s", have)
	}
	want := "failed and isn't in failing.txt: new\npassed and is in failing.txt: mended"
	if err := v.Err(); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want it to end with %q", err, want)
	}
	if err := Judge([]string{"good", "known"}, known, Results{"good": {State: Passed},
		"known": {State: Failed}}).Err(); err != nil {
		t.Errorf("exactly the known failures failed, and still: %v", err)
	}
}

// TestAdd reads a report in the format of e2e.test.
func TestAdd(t *testing.T) {
	records, err := readReport("testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	have, want := Results{}, []string{
		"[sig-network] Services good", "[sig-network] Services bad", "[sig-network] Services not for us",
		"[sig-network] Services cut short", "[sig-network] Services never begun", "[sig-network] Services absent",
	}
	if n := have.add(records, want); n != 3 || len(have) != 3 {
		t.Errorf("%d results, want those of 3 specs that ran to their end: %v", n, have)
	}
	if r := have[want[0]]; r.State != Passed || r.Seconds != 1.5 {
		t.Errorf("good: %+v, want passed in 1.5 s", r)
	}
	if r := have[want[1]]; r.State != Failed || r.Message != "no answer\nat all" {
		t.Errorf("bad: %+v, want failed with its message: a panic is a failure", r)
	}
	if r := have[want[2]]; r.State != Skipped || r.Message != "needs five nodes" {
		t.Errorf("not for us: %+v, want skipped with the reason", r)
	}
}

func TestDocument(t *testing.T) {
	var b strings.Builder
	d := Document{
		Version: "Kubernetes v1", System: sandbox.System{OVN: "26.03.1", OpenVSwitch: "4.0.0"},
		Failing: map[string]string{extra: "a bug"}, Older: map[string]string{mandatory: "an older bug"},
		Selection: Selection{Run: []string{mandatory, extra, "[sig-network] New", "[sig-network] Absent"},
			Excluded: map[string][]string{"needs a cloud": {cloud}}},
		Results: Results{mandatory: {State: Passed}, extra: {State: Failed, Message: "no answer"},
			"[sig-network] New": {State: Failed, Message: "odd\nvery"}},
	}
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"with OVN 26.03.1 and Open vSwitch 4.0.0.\n",
		"## Fail with an older OVN only\n\n- Services should serve \\[Conformance\\]: an older bug\n",
		"| pass | 1 | 1 |", "| fail | 2 | 0 |", "| not run yet | 1 | 0 |", "| excluded | 1 | 0 |",
		"- Services should hairpin: a bug\n", "- New: not looked into: odd\n",
		"## Pass\n\n- Services should serve \\[Conformance\\]\n",
		"needs a cloud (1):\n\n- LoadBalancers \\[Feature:LoadBalancer\\] should work\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the document:\n%s", want, b.String())
		}
	}
}

func TestFirstSubnet(t *testing.T) {
	have, err := firstSubnet(`{"default":["10.244.1.0/24","fd00::/64"]}`)
	if err != nil || have.String() != "10.244.1.0/24" {
		t.Errorf("%v, %v, want 10.244.1.0/24", have, err)
	}
	for _, bad := range []string{"", `{"default":[]}`, `{"default":["10.244.1.0"]}`} {
		if _, err := firstSubnet(bad); err == nil {
			t.Errorf("firstSubnet(%q) is no error", bad)
		}
	}
}

// TestProvide checks that the requested system is used, or is an error, but never replaced by another.
func TestProvide(t *testing.T) {
	var out bytes.Buffer
	if _, err := Provide(t.Context(), "../../bin", "elsewhere", &out); err == nil || !strings.Contains(err.Error(),
		`OVN from "elsewhere"`) || out.Len() > 0 {
		t.Errorf("OVN from elsewhere: %v, and it said %q, want an error alone", err, out.String())
	}
	s, err := Provide(t.Context(), "../../bin", sandbox.OVNRootfs, &out)
	if err != nil {
		t.Fatal(err)
	}
	if s.From != sandbox.OVNRootfs || !strings.HasPrefix(s.OVN, s.Release[:2].String()) {
		t.Errorf("system %+v, release %s, want that of a root filesystem", s, s.Release)
	}
}

// TestNewest checks that another system replaces the newest if that is unavailable, with a message, and that an
// interrupted run uses none.
func TestNewest(t *testing.T) {
	var out bytes.Buffer
	var tried []string
	get := func(from string) (System, error) {
		if tried = append(tried, from); from == sandbox.OVNNewest {
			return System{}, errors.New("no such mirror")
		}
		return System{From: from}, nil
	}
	s, err := newest(t.Context(), &out, get)
	if err != nil || s.From != sandbox.OVNRootfs || !strings.Contains(out.String(), "no such mirror") {
		t.Errorf("%+v, %v, told %q: want %s, and why", s, err, out.String(), sandbox.OVNRootfs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tried = nil
	if _, err = newest(ctx, &out, get); err == nil || !slices.Equal(tried, []string{sandbox.OVNNewest}) {
		t.Errorf("interrupted: %v after trying %v, want an error after the first", err, tried)
	}
}
