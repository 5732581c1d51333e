package ovspod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// openFlow is the version that OVN uses. Bridges have it unless somebody restricts their protocols.
const openFlow = "-OOpenFlow15"

// Flows are the OpenFlow rules of bridges, and what these refer to, as commands of ovs-ofctl(8). They are what
// `ovs-save save-flows` saves, and meters, which a rule of OVN's logs refers to.
type Flows struct{ Layout }

// Save saves the flows of all bridges. Whatever was saved before is forgotten.
func (f Flows) Save(ctx context.Context) error {
	if err := f.Forget(); err != nil {
		return err
	}
	bridges, err := f.tool(ctx, "ovs-appctl", "--timeout=10", "-t", "ovs-vswitchd", "ofproto/list")
	if err != nil {
		return err
	}
	partial := f.saved() + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("saving the flows: %w", err)
	}
	if err := os.MkdirAll(partial, 0o700); err != nil {
		return fmt.Errorf("saving the flows: %w", err)
	}
	var errs []error
	for bridge := range strings.FieldsSeq(bridges) {
		errs = append(errs, f.save(ctx, bridge, filepath.Join(partial, bridge)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("saving the flows: %w", err)
	}
	if err := os.Rename(partial, f.saved()); err != nil {
		return fmt.Errorf("saving the flows: %w", err)
	}
	return atomicfile.SyncDir(f.Sockets)
}

// Endings of the files of a bridge.
const (
	tlvFile    = ".tlv"    // the argument of add-tlv-map
	metersFile = ".meters" // lines for add-meter
	bundleFile = ".bundle" // groups and flows, for bundle
)

func (f Flows) save(ctx context.Context, bridge, base string) error {
	dump := func(command string, args ...string) (string, error) {
		return f.tool(ctx, "ovs-ofctl", append([]string{openFlow, "--timeout=20", command, bridge}, args...)...)
	}
	options, err := dump("dump-tlv-map")
	if err != nil {
		return err
	}
	bands, err := dump("dump-meters")
	if err != nil {
		return err
	}
	groups, err := dump("dump-groups")
	if err != nil {
		return err
	}
	rules, err := dump("dump-flows", "--no-names", "--no-stats")
	if err != nil {
		return err
	}
	var errs []error
	for ending, text := range map[string]string{
		tlvFile: tlvMap(options), metersFile: meters(bands), bundleFile: bundle(groups, rules),
	} {
		errs = append(errs, os.WriteFile(base+ending, []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

// tlvMap turns the table of tunnel options into the argument of add-tlv-map.
func tlvMap(out string) string {
	var all []string
	for line := range strings.Lines(out) {
		if w := strings.Fields(line); len(w) == 4 && strings.HasPrefix(w[0], "0x") {
			all = append(all, fmt.Sprintf("{class=%s,type=%s,len=%s}->%s", w[0], w[1], w[2], w[3]))
		}
	}
	return strings.Join(all, ",")
}

// meters has a line for each meter. Its bands are lines of their own in the output.
func meters(out string) string {
	var all []string
	for line := range strings.Lines(out) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "meter="):
			all = append(all, line)
		case len(all) > 0 && line != "":
			all[len(all)-1] += " " + line
		}
	}
	return lines(all)
}

// onlyIfEmpty are the first messages of a bundle, which fails as a whole when one of them does. They fail when
// ovn-controller has given br-int its flows meanwhile: what was saved may be older. OVN's first table has flows of this
// priority for each port.
const onlyIfEmpty = "flow add table=0,priority=100,check_overlap,actions=drop\n" +
	"flow delete_strict table=0,priority=100\n"

// bundle makes one change of groups and flows. It replaces what ovs-ofctl prints and does not read.
func bundle(groups, flows string) string {
	igmp := strings.NewReplacer("igmp_type", "tp_src", "igmp_code", "tp_dst", "igmp", "ip,nw_proto=2")
	age := regexp.MustCompile(`(idle|hard)_age=[^,]*,`)
	var all []string
	for _, line := range withoutHeader(groups) {
		all = append(all, "group add "+line)
	}
	for _, line := range withoutHeader(flows) {
		all = append(all, "flow add "+igmp.Replace(age.ReplaceAllString(line, "")))
	}
	return onlyIfEmpty + lines(all)
}

func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// withoutHeader are the lines without the names of OpenFlow's messages.
func withoutHeader(out string) (all []string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "OFPST_") && !strings.HasPrefix(line, "NXST_") {
			all = append(all, line)
		}
	}
	return all
}

// Saved tells whether there are flows to restore.
func (f Flows) Saved() bool { return exists(f.saved()) }

// Restore gives the bridges the flows that were saved. A bridge whose flows cannot be restored does not keep others
// from theirs.
func (f Flows) Restore(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(f.saved(), "*"+bundleFile))
	errs := []error{err}
	for _, file := range files {
		bridge := strings.TrimSuffix(filepath.Base(file), bundleFile)
		if err := f.restore(ctx, bridge); err != nil {
			errs = append(errs, fmt.Errorf("restoring the flows of bridge %s: %w", bridge, err))
		}
	}
	return errors.Join(errs...)
}

func (f Flows) restore(ctx context.Context, bridge string) error {
	base := filepath.Join(f.saved(), bridge)
	ofctl := func(args ...string) error {
		_, err := f.tool(ctx, "ovs-ofctl", append([]string{openFlow, "--timeout=20"}, args...)...)
		return err
	}
	options, err := os.ReadFile(base + tlvFile)
	if err != nil {
		return err
	}
	bands, err := os.ReadFile(base + metersFile)
	if err != nil {
		return err
	}
	if len(options) > 0 {
		if err := ofctl("add-tlv-map", bridge, string(options)); err != nil {
			return err
		}
	}
	for meter := range strings.Lines(string(bands)) {
		if err := ofctl("add-meter", bridge, strings.TrimSpace(meter)); err != nil {
			return err
		}
	}
	return ofctl("bundle", bridge, base+bundleFile)
}

// Forget removes what was saved.
func (f Flows) Forget() error {
	if err := os.RemoveAll(f.saved()); err != nil {
		return fmt.Errorf("removing saved flows: %w", err)
	}
	return nil
}
