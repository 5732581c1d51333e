package preflight

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// answerWithin is how long NetworkManager may take to print its configuration.
const answerWithin = 5 * time.Second

// networkManager asks NetworkManager, if it runs, for its configuration, as it has merged that from its files.
func (f *Facts) networkManager(ctx context.Context) {
	const program = "NetworkManager"
	if !f.Processes[program] {
		return
	}
	file, err := exec.LookPath(program)
	if err != nil {
		f.Unknown["networkmanager"] = errors.New("NetworkManager runs, but its program is not here to ask for its " +
			"configuration")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, "--print-config").Output()
	if err != nil {
		f.Unknown["networkmanager"] = fmt.Errorf("running NetworkManager --print-config: %w", err)
	}
	f.NetworkManager = string(out)
}

// ownLinks are names of interfaces that Northbound and Open vSwitch make, each with the pattern for all of its kind.
// Pods' own are left out: udev's rules keep NetworkManager from veth devices.
func ownLinks(node string) [][2]string {
	if node == "" {
		node = "NODE"
	}
	return [][2]string{
		{names.IntegrationBridge, names.IntegrationBridge}, {"genev_sys_6081", "genev_sys_*"},
		{"vxlan_sys_4789", "vxlan_sys_*"}, {names.ManagementInterface(node), names.ManagementInterface("") + "*"},
	}
}

func checkNetworkManager(c Config, f Facts) doctor.Finding {
	switch {
	case !c.Worker:
		return fine("not needed here")
	case !f.Processes["NetworkManager"]:
		return fine("NetworkManager does not run")
	}
	var managed, patterns []string
	for _, link := range ownLinks(c.Node.Name) {
		patterns = append(patterns, "interface-name:"+link[1])
		if !unmanaged(f.NetworkManager, link[0]) {
			managed = append(managed, link[0])
		}
	}
	var wrong faults
	if len(managed) > 0 {
		wrong.add(fmt.Sprintf(`printf '[keyfile]\nunmanaged-devices=%s\n' >/etc/NetworkManager/conf.d/99-northbound.conf`,
			strings.Join(patterns, ";")), "NetworkManager manages %s when they are made", strings.Join(managed, ", "))
		wrong.fixes = append(wrong.fixes, "systemctl reload NetworkManager")
		if earlier := keyfileDevices(f.NetworkManager); earlier != "" {
			wrong.fixes = append(wrong.fixes, "# keep what unmanaged-devices has now, too: "+earlier)
		}
	}
	return wrong.finding("NetworkManager leaves Northbound's interfaces alone")
}

// section is a part of NetworkManager's configuration (NetworkManager.conf(5)).
type section struct {
	name   string
	values map[string]string
}

func sections(configuration string) (out []section) {
	for line := range strings.Lines(configuration) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			out = append(out, section{strings.TrimSuffix(name, "]"), map[string]string{}})
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && !strings.HasPrefix(line, "#") && len(out) > 0 {
			out[len(out)-1].values[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// keyfileDevices is the list of the setting keyfile.unmanaged-devices.
func keyfileDevices(configuration string) string {
	for _, s := range sections(configuration) {
		if s.name == "keyfile" {
			return s.values["unmanaged-devices"]
		}
	}
	return ""
}

// unmanaged tells whether a configuration leaves an interface alone.
func unmanaged(configuration, link string) bool {
	for _, s := range sections(configuration) {
		off := slices.Contains([]string{"0", "false", "no", "off"}, strings.ToLower(s.values["managed"]))
		if s.name == "keyfile" && listed(s.values["unmanaged-devices"], link) ||
			strings.HasPrefix(s.name, "device") && off && listed(s.values["match-device"], link) {
			return true
		}
	}
	return false
}

// listed tells whether a list of devices names an interface, by its name alone: other marks, such as its driver, are
// known only when it is there. Source: NetworkManager.conf(5), "Device List Format".
func listed(list, link string) (is bool) {
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(";, ", r) }) {
		item, except := strings.CutPrefix(item, "except:")
		item = strings.TrimPrefix(item, "interface-name:")
		exact, isExact := strings.CutPrefix(item, "=")
		glob, err := path.Match(item, link)
		if same := isExact && exact == link || err == nil && glob; same {
			if except {
				return false
			}
			is = true
		}
	}
	return is
}
