package sandbox

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

// System is the system from which the machines of a sandbox take their programs.
type System struct {
	OVN         string // versions, such as 25.03.0
	OpenVSwitch string
	Release     Release // of OVN
}

// Provide fetches the system for a sandbox of these options if need be, and describes it. Up calls it, too.
func Provide(ctx context.Context, options Options) (s System, err error) {
	o, err := options.complete()
	if err != nil {
		return s, err
	}
	source, err := provide(ctx, o, progress.New(o.Progress))
	if err != nil {
		return s, err
	}
	if s.OVN, err = rootfs.Version(ctx, source, "ovn-common"); err != nil {
		return s, err
	}
	if s.OpenVSwitch, err = rootfs.Version(ctx, source, "openvswitch-common"); err != nil {
		return s, err
	}
	s.Release, err = ParseRelease(s.OVN)
	return s, err
}

// Release is a release of OVN: 26, 3 and possibly more numbers.
type Release []int

// ParseRelease parses a version such as "26.03" or "26.03.1~rc1". It ignores everything after the numbers.
func ParseRelease(version string) (Release, error) {
	var r Release
	numbers := regexp.MustCompile(`^\d+\.\d+(\.\d+)*`).FindString(version)
	for n := range strings.SplitSeq(numbers, ".") {
		i, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("parsing OVN's version %q: want one such as 26.03", version)
		}
		r = append(r, i)
	}
	return r, nil
}

// Before reports whether r is older than other.
func (r Release) Before(other Release) bool { return slices.Compare(r, other) < 0 }

// String has OVN's form: 26.03.
func (r Release) String() string {
	var parts []string
	for i, n := range r {
		if i == 1 { // a month
			parts = append(parts, fmt.Sprintf("%02d", n))
			continue
		}
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ".")
}
