package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
)

// UFW is the configuration of ufw, Ubuntu's firewall.
type UFW struct {
	Enabled        bool
	DropsInput     bool // what no rule accepts
	DropsForwarded bool
	accepts        []acceptance
}

// acceptance is a rule of ufw that accepts packets to this machine. Where they come from is not read.
type acceptance struct {
	protocol string // "tcp", "udp" or "any"
	ports    string // "any", or such as "80,6641:6644"
}

// includes is true for a rule that accepts packets to a port.
func (a acceptance) includes(protocol string, port int) bool {
	if a.protocol != protocol && a.protocol != "any" {
		return false
	}
	return a.ports == "any" || slices.ContainsFunc(strings.Split(a.ports, ","), func(r string) bool {
		first, last, isRange := strings.Cut(r, ":")
		if !isRange {
			last = first
		}
		low, err1 := strconv.Atoi(first)
		high, err2 := strconv.Atoi(last)
		return err1 == nil && err2 == nil && low <= port && port <= high
	})
}

// readUFW reads ufw's configuration below a directory, which is / but in tests.
func readUFW(root string) (UFW, error) {
	var u UFW
	enabled, err := assignment(filepath.Join(root, "etc/ufw/ufw.conf"), "ENABLED")
	if u.Enabled = enabled == "yes"; err != nil || !u.Enabled {
		return u, err
	}
	defaults := filepath.Join(root, "etc/default/ufw")
	input, err1 := assignment(defaults, "DEFAULT_INPUT_POLICY")
	forward, err2 := assignment(defaults, "DEFAULT_FORWARD_POLICY")
	if err := errors.Join(err1, err2); err != nil {
		return u, err
	}
	u.DropsInput, u.DropsForwarded = input != "ACCEPT", forward != "ACCEPT"
	for _, file := range []string{"etc/ufw/user.rules", "etc/ufw/user6.rules"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return u, fmt.Errorf("reading ufw's rules: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if rule, ok := strings.CutPrefix(line, "### tuple ### "); ok {
				u.add(strings.Fields(rule))
			}
		}
	}
	return u, nil
}

// add notes a rule that accepts packets: action, protocol, port, and from where to where. The last field but a comment
// is the direction, such as "in" or "in_eth0".
func (u *UFW) add(rule []string) {
	action, _, _ := strings.Cut(rule[0], "_") // what follows says what is logged
	rule = slices.DeleteFunc(rule, func(field string) bool { return strings.HasPrefix(field, "comment=") })
	if len(rule) < 7 || (action != "allow" && action != "limit") || !strings.HasPrefix(rule[len(rule)-1], "in") {
		return
	}
	u.accepts = append(u.accepts, acceptance{rule[1], rule[2]})
}

// assignment is what a shell's file assigns to a variable, "" if it does not, or if there is no such file.
func assignment(file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the setting %s: %w", name, err)
	}
	value := ""
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+"="); ok {
			value = strings.Trim(v, `"'`)
		}
	}
	return value, nil
}

func checkUFW(c Config, f Facts) doctor.Finding {
	if !f.UFW.Enabled {
		return fine("ufw is not there, or is disabled")
	}
	var wrong faults
	if c.Worker && f.UFW.DropsForwarded {
		wrong.add("ufw default allow routed", "ufw drops what the node forwards for pods")
	}
	for _, p := range Ports(c) {
		port, err := strconv.Atoi(strings.TrimPrefix(p.Address, ":"))
		if err != nil || !f.UFW.DropsInput { // one of an address, such as 127.0.0.1: nothing comes from other machines
			continue
		}
		if !slices.ContainsFunc(f.UFW.accepts, func(a acceptance) bool { return a.includes(p.Network, port) }) {
			wrong.add(fmt.Sprintf("ufw allow proto %s from NETWORK to any port %d  # NETWORK: of the nodes, such as 10.0.0.0/24",
				p.Network, port), "ufw drops what other nodes send to %s", p)
		}
	}
	return wrong.finding("ufw accepts what the node forwards, and what other nodes send to its ports")
}
