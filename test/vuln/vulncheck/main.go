// Command vulncheck reads what `govulncheck -format json` has found, and prints a line for each vulnerability that the
// product calls. It ends with exit code 1 if one of them is in a module. One of Go's standard library is mended by
// another Go, which is the machine's: it names the version, and fails only with --strict.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// standard is the name of the standard library in findings.
const standard = "stdlib"

// message is one of govulncheck's messages (golang.org/x/vuln/internal/govulncheck). One member is set.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
	}
	OSV *struct {
		ID, Summary string
	}
	Finding *finding
}

type finding struct {
	OSV   string
	Fixed string `json:"fixed_version"`
	Trace []struct{ Module, Version, Function string }
}

func main() {
	strict := flag.Bool("strict", false, "fail for vulnerabilities of Go's standard library, too")
	flag.Parse()
	code, err := judge(os.Stdin, os.Stdout, *strict)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		code = 1
	}
	os.Exit(code)
}

// judge reads messages from in, and writes what they mean. code is that with which the program ends.
func judge(in io.Reader, out io.Writer, strict bool) (code int, err error) {
	summaries, called, version, err := read(in)
	if err != nil {
		return 0, err
	}
	if version == "" {
		return 0, errors.New("govulncheck has said nothing: see above")
	}
	for _, key := range slices.Sorted(maps.Keys(called)) {
		f := called[key]
		at, mended := f.Trace[0], f.Fixed
		if mended == "" {
			mended = "no version yet"
		}
		fmt.Fprintf(out, "%s  %s %s, mended in %s: %s\n", f.OSV, at.Module, at.Version, mended,
			summaries[f.OSV])
		if at.Module != standard || strict {
			code = 1
		}
	}
	switch {
	case len(called) == 0:
		fmt.Fprintf(out, "No known vulnerability in what the product calls, built with %s.\n", version)
	case code == 0:
		fmt.Fprintf(out, "None in a module. A newer Go than %s mends what is listed.\n", version)
	}
	return code, nil
}

// read returns the summaries of vulnerabilities, by ID, and the first finding of each that the product calls, by ID and
// module: one vulnerability may be in several modules.
func read(in io.Reader) (summaries map[string]string, called map[string]finding, version string, err error) {
	summaries, called = map[string]string{}, map[string]finding{}
	for messages := json.NewDecoder(in); ; {
		var m message
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return summaries, called, version, nil
		case err != nil:
			return nil, nil, "", fmt.Errorf("reading what govulncheck has found: %w", err)
		}
		switch {
		case m.Config != nil:
			version = m.Config.GoVersion
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Function != "":
			key := m.Finding.OSV + " " + m.Finding.Trace[0].Module
			if _, known := called[key]; !known {
				called[key] = *m.Finding
			}
		}
	}
}
