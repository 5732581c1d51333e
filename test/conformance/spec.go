package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// SIG selects the part of Kubernetes' specs that is run.
const SIG = "[sig-network]"

// record is a spec in the report of a run, in the format of ginkgo's --json-report (Ginkgo's documentation, "Generating
// machine-readable reports").
type record struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

func (r record) name() string {
	return strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " ")
}

// isSpec tells specs from setup and cleanup nodes.
func (r record) isSpec() bool { return r.LeafNodeType == "It" }

// ended reports whether a spec ran to its end. A spec that was never reached counts as skipped, too, but has no reason.
func (r record) ended() bool {
	return r.isSpec() && r.State != "interrupted" && r.State != "pending" &&
		(r.State != Skipped || r.Failure.Message != "")
}

func readReport(file string) ([]record, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the report of e2e.test: %w", err)
	}
	var suites []struct{ SpecReports []record }
	if err := json.Unmarshal(b, &suites); err != nil {
		return nil, fmt.Errorf("reading the report of e2e.test: %w", err)
	}
	var all []record
	for _, s := range suites {
		all = append(all, s.SpecReports...)
	}
	return all, nil
}

// Specs lists the names of the SIG's specs in program, e2e.test.
func Specs(ctx context.Context, program string) (names []string, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, fmt.Errorf("listing the specs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	report := filepath.Join(dir, "specs.json")
	cmd := exec.CommandContext(ctx, program, "--ginkgo.dry-run", "--ginkgo.json-report="+report)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("listing the specs: %w: %s", err, lastLines(string(out), 5))
	}
	records, err := readReport(report)
	if err != nil {
		return nil, fmt.Errorf("listing the specs: %w", err)
	}
	for _, r := range records {
		if r.isSpec() && strings.HasPrefix(r.name(), SIG) {
			names = append(names, r.name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("listing the specs: none of %d begins with %s", len(records), SIG)
	}
	return names, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
