package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

// The oldest versions that Northbound is tested with.
const (
	OldestOVS = "3.1.0"
	OldestOVN = "23.03.0"
)

// BrokenUserspace tells whether the userspace datapath of this version of Open vSwitch
// aborts in connection tracking ("assertion conn->conn_type == CT_CONN_TYPE_DEFAULT
// failed"): 3.1 before 3.1.3, and 3.2 before 3.2.3.
func BrokenUserspace(version string) bool {
	return AtLeast(version, "3.1.0") && !AtLeast(version, "3.1.3") ||
		AtLeast(version, "3.2.0") && !AtLeast(version, "3.2.3")
}

// versionWithin is how long a program may take to tell its version.
const versionWithin = 5 * time.Second

// ProgramVersion asks a program for its version with --version. The version is "" if the program does not tell it, and
// found is false if PATH has no such program.
func ProgramVersion(ctx context.Context, name string) (version string, found bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", true
	}
	return VersionIn(string(out)), true
}

// VersionIn is the first version number in a text, "" when there is none.
func VersionIn(text string) string {
	return regexp.MustCompile(`\d+\.\d+(\.\d+)?`).FindString(text)
}

// AtLeast compares version numbers, part by part.
func AtLeast(version, least string) bool {
	parts := func(s string) (out [3]int) {
		// A part that is missing or no number counts as 0.
		_, _ = fmt.Sscanf(s, "%d.%d.%d", &out[0], &out[1], &out[2])
		return out
	}
	v, l := parts(version), parts(least)
	return slices.Compare(v[:], l[:]) >= 0
}
