package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/ini.v1"

	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// defaultConfigFile is where the settings file is looked for; it need not be
// there.
const defaultConfigFile = "/etc/openvswitch/ovn_k8s.conf"

// setting is where a flag's value comes from when neither the command line nor
// the environment has one: the settings file, then the Open_vSwitch row.
type setting struct {
	flag    string
	section string // of the settings file
	key     string
	ovs     string // key in external_ids, "" for none
}

// settings lists them, in the names of the classic settings file.
func settings() []setting {
	return []setting{
		{"kubeconfig", "kubernetes", "kubeconfig", ""},
		{"k8s-apiserver", "kubernetes", "apiserver", "k8s-api-server"},
		{"k8s-cacert", "kubernetes", "cacert", "k8s-ca-certificate"},
		{"k8s-token", "kubernetes", "token", "k8s-api-token"},
		{"k8s-service-cidrs", "kubernetes", "service-cidrs", ""},
		{"nb-address", "ovnnorth", "address", "ovn-nb"},
		{"nb-privkey", "ovnnorth", "client-privkey", ""},
		{"nb-cert", "ovnnorth", "client-cert", ""},
		{"nb-cacert", "ovnnorth", "client-cacert", ""},
		{"sb-address", "ovnsouth", "address", ""},
		{"cluster-subnets", "default", "cluster-subnets", ""},
		{"join-subnet", "default", "join-subnet", ""},
		{"mtu", "default", "mtu", ""},
		{"encap-ip", "default", "encap-ip", ""},
		{"encap-type", "default", "encap-type", ""},
		{"datapath-type", "default", "datapath-type", "ovn-bridge-datapath-type"},
		{"cni-conf-dir", "cni", "conf-dir", ""},
		{"log-level", "logging", "level", ""},
		{"log-format", "logging", "format", ""},
		{"gateway-mode", "gateway", "mode", ""},
		{"gateway-interface", "gateway", "interface", ""},
		{"gateway-nexthop", "gateway", "next-hop", ""},
		{"gateway-vlan-id", "gateway", "vlan-id", ""},
	}
}

const configFlagName = "config-file"

// configFlag names the settings file.
func configFlag() cli.Flag {
	return stringFlag(configFlagName, defaultConfigFile, "settings `FILE` (INI) for what neither flags nor environment say")
}

// readSettings gives the command's flags that are not set their values from
// the settings file and, with fromOVS, from the Open_vSwitch row.
func readSettings(c *cli.Context, fromOVS bool) error {
	file, err := settingsFile(c)
	if err != nil {
		return err
	}
	// Which API server is one setting: a higher source that names one in either
	// way is not to be mixed with a lower one.
	server := c.String("kubeconfig") != "" || c.String("k8s-apiserver") != ""
	row := func(string) (string, error) { return "", nil }
	if fromOVS {
		if db := openOVS(c); db != nil {
			defer db.Close()
			row = db.ExternalID
		}
	}
	for _, source := range []source{fileSource(c.String(configFlagName), file), rowSource(row)} {
		found, err := fill(c, source, server)
		if err != nil {
			return err
		}
		server = server || found
	}
	return nil
}

// source is a place that has settings.
type source struct {
	value func(setting) (string, error) // "" when it has none
	name  func(setting) string          // where in it that setting is, for errors
}

func fileSource(name string, file map[string]map[string]string) source {
	return source{
		func(s setting) (string, error) { return file[s.section][s.key], nil },
		func(s setting) string { return fmt.Sprintf("[%s] %s of --config-file %s", s.section, s.key, name) },
	}
}

// rowSource is the Open_vSwitch row, of whose external_ids value reads one key.
// That there is no row yet is no error: the command may be what makes it.
func rowSource(value func(key string) (string, error)) source {
	return source{
		func(s setting) (string, error) {
			if s.ovs == "" {
				return "", nil
			}
			v, err := value(s.ovs)
			if errors.Is(err, ovs.ErrNoRoot) {
				return "", nil
			}
			return v, err
		},
		func(s setting) string { return fmt.Sprintf("external_ids:%s of the Open_vSwitch row", s.ovs) },
	}
}

// fill sets flags from one source; it tells whether the source named an API
// server.
func fill(c *cli.Context, from source, server bool) (found bool, err error) {
	for _, s := range settings() {
		if !hasFlag(c.Command, s.flag) || c.IsSet(s.flag) {
			continue
		}
		names := s.flag == "kubeconfig" || s.flag == "k8s-apiserver"
		if names && server {
			continue
		}
		value, err := from.value(s)
		if err != nil {
			return found, fmt.Errorf("reading --%s from %s: %w", s.flag, from.name(s), err)
		}
		if value == "" {
			continue
		}
		if err := c.Set(s.flag, value); err != nil {
			return found, fmt.Errorf("setting --%s to %q from %s: %w", s.flag, value, from.name(s), err)
		}
		found = found || names
	}
	return found, nil
}

func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// settingsFile reads the file; a default one that is not there is empty. Keys
// that nothing knows are told of: a typing error would be silent otherwise.
func settingsFile(c *cli.Context) (map[string]map[string]string, error) {
	name := c.String(configFlagName)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !c.IsSet(configFlagName) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading --config-file: %w", err)
	}
	parsed, err := ini.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("reading --config-file %s: %w: want an INI file such as [ovnnorth] with a line address=tcp:192.0.2.1:6641", name, err)
	}
	out := map[string]map[string]string{}
	for _, section := range parsed.Sections() {
		// [default] in any case is also the library's name for what precedes
		// all sections.
		where := strings.ToLower(section.Name())
		if out[where] == nil {
			out[where] = map[string]string{}
		}
		for _, key := range section.Keys() {
			if !slices.ContainsFunc(settings(), func(s setting) bool { return s.section == where && s.key == key.Name() }) {
				warn(c.App.ErrWriter, fmt.Sprintf("--config-file %s: [%s] %s is not a setting: it is left out", name, section.Name(), key.Name()))
				continue
			}
			out[where][key.Name()] = key.Value()
		}
	}
	return out, nil
}

// openOVS connects to the local Open vSwitch, nil if it is not there: what
// needs it will say so.
func openOVS(c *cli.Context) *ovs.DB {
	address := c.String("ovs-address")
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	}
	db, err := ovs.Open(c.Context, address, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	return db
}
