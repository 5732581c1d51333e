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

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// defaultConfigFile is the path of the settings file, which need not exist.
const defaultConfigFile = "/etc/openvswitch/ovn_k8s.conf"

// setting says where a flag's value comes from when neither the command line nor the environment sets it: from the
// settings file, else from the Open_vSwitch row.
type setting struct {
	flag    string
	section string // of the settings file
	key     string
	ovs     string // key in external_ids, "" for none
}

// allSettings lists all settings, by the names that the classic settings file has for them.
func allSettings() []setting {
	return []setting{
		{"kubeconfig", "kubernetes", "kubeconfig", ""},
		{"k8s-apiserver", "kubernetes", "apiserver", names.OVSAPIServer},
		{"k8s-cacert", "kubernetes", "cacert", names.OVSAPICACert},
		{"k8s-token", "kubernetes", "token", names.OVSAPIToken},
		{"k8s-service-cidrs", "kubernetes", "service-cidrs", ""},
		{"external-ip-cidrs", "kubernetes", "external-ip-cidrs", ""},
		{"max-service-vips", "kubernetes", "max-service-vips", ""},
		{"max-namespace-vips", "kubernetes", "max-namespace-vips", ""},
		{"max-service-endpoints", "kubernetes", "max-service-endpoints", ""},
		{"nb-address", "ovnnorth", "address", names.OVSNorthbound},
		{"nb-privkey", "ovnnorth", "client-privkey", ""},
		{"nb-cert", "ovnnorth", "client-cert", ""},
		{"nb-cacert", "ovnnorth", "client-cacert", ""},
		{"sb-address", "ovnsouth", "address", ""},
		{"cluster-subnets", "default", "cluster-subnets", ""},
		{"join-subnet", "default", "join-subnet", ""},
		{"gateway-cidrs", "default", "gateway-cidrs", ""},
		{"gateway-pin-cidrs", "default", "gateway-pin-cidrs", ""},
		{"physical-networks", "default", "physical-networks", ""},
		{"multitenant", "default", "multitenant", ""},
		{"acl-log-rate", "logging", "acl-rate", ""},
		{"max-pod-connections", "default", "max-pod-connections", ""},
		{"max-policy-rules", "default", "max-policy-rules", ""},
		{"max-policy-selectors", "default", "max-policy-selectors", ""},
		{"max-policy-ranges", "default", "max-policy-ranges", ""},
		{"max-policy-ports", "default", "max-policy-ports", ""},
		{"max-namespace-policy-selectors", "default", "max-namespace-policy-selectors", ""},
		{"max-namespace-policy-terms", "default", "max-namespace-policy-terms", ""},
		{"acl-ct-translation", "default", "acl-ct-translation", ""},
		{"mtu", "default", "mtu", ""},
		{"encap-ip", "default", "encap-ip", ""},
		{"encap-type", "default", "encap-type", ""},
		{"datapath-type", "default", "datapath-type", names.OVSBridgeDatapath},
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
	return stringFlag(configFlagName, defaultConfigFile, "INI `FILE` of settings that neither flags nor environment give")
}

// readSettings sets the command's flags that are still unset from the settings file and, with fromOVS, from the
// Open_vSwitch row.
func readSettings(c *cli.Context, fromOVS bool) error {
	file, err := settingsFile(c)
	if err != nil {
		return err
	}
	// --kubeconfig and --k8s-apiserver are alternatives: once a source gives one, later sources must not add the other.
	haveServer := c.String("kubeconfig") != "" || c.String("k8s-apiserver") != ""
	sources := []source{fileSource(c.String(configFlagName), file)}
	if fromOVS {
		if db := openOVS(c); db != nil {
			defer db.Close()
			sources = append(sources, rowSource(db.ExternalID))
		}
	}
	for _, source := range sources {
		if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
			source = source.inPod()
		}
		found, err := fill(c, source, haveServer)
		if err != nil {
			return err
		}
		haveServer = haveServer || found
	}
	return nil
}

// source is a place that settings are read from. The value is "" when it has none; place is where the setting is in the
// source, for errors.
type source func(setting) (value, place string, err error)

// inPod is the source for a pod, which has its ServiceAccount: what was once set by hand on its node about the API
// server is left out.
func (from source) inPod() source {
	ofServer := []string{"kubeconfig", "k8s-apiserver", "k8s-cacert", "k8s-token"}
	return func(s setting) (value, place string, err error) {
		if slices.Contains(ofServer, s.flag) {
			return "", "", nil
		}
		return from(s)
	}
}

func fileSource(name string, file map[string]map[string]string) source {
	return func(s setting) (string, string, error) {
		return file[s.section][s.key], fmt.Sprintf("[%s] %s of --config-file %s", s.section, s.key, name), nil
	}
}

// rowSource reads settings from external_ids of the Open_vSwitch row, where read reads one key. A missing row is no
// error: the command may be the one that creates it.
func rowSource(read func(key string) (string, error)) source {
	return func(s setting) (value, place string, err error) {
		if s.ovs == "" {
			return "", "", nil
		}
		if value, err = read(s.ovs); errors.Is(err, ovs.ErrNoRoot) {
			err = nil
		}
		return value, "external_ids:" + s.ovs + " of the Open_vSwitch row", err
	}
}

// fill sets unset flags from one source. It ignores the source's API server if haveServer; found says whether the
// source set one.
func fill(c *cli.Context, from source, haveServer bool) (found bool, err error) {
	for _, s := range allSettings() {
		if !hasFlag(c.Command, s.flag) || c.IsSet(s.flag) {
			continue
		}
		isServer := s.flag == "kubeconfig" || s.flag == "k8s-apiserver"
		if isServer && haveServer {
			continue
		}
		value, place, err := from(s)
		if err != nil {
			return found, fmt.Errorf("reading --%s from %s: %w", s.flag, place, err)
		}
		if value == "" {
			continue
		}
		if err := c.Set(s.flag, value); err != nil {
			return found, fmt.Errorf("setting --%s to %q from %s: %w", s.flag, value, place, err)
		}
		found = found || isServer
	}
	return found, nil
}

func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// settingsFile reads the settings file into section -> key -> value. The default file may be missing. Unknown keys
// get a warning, so that typing errors are noticed.
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
		return nil, fmt.Errorf("reading --config-file %s: %w: want an INI file such as [ovnnorth] with a line "+
			"address=ssl:192.0.2.1:6641", name, err)
	}
	out := map[string]map[string]string{}
	for _, section := range parsed.Sections() {
		// The library puts settings that precede all sections into "DEFAULT": the same as our [default].
		where := strings.ToLower(section.Name())
		if out[where] == nil {
			out[where] = map[string]string{}
		}
		for _, key := range section.Keys() {
			known := func(s setting) bool { return s.section == where && s.key == key.Name() }
			if !slices.ContainsFunc(allSettings(), known) {
				warn(c.App.ErrWriter, fmt.Sprintf("--config-file %s: [%s] %s is not a setting: it is ignored",
					name, section.Name(), key.Name()))
				continue
			}
			out[where][key.Name()] = key.Value()
		}
	}
	return out, nil
}

// openOVS connects to the local Open vSwitch. It returns nil if that fails: a command that needs Open vSwitch
// reports the error itself.
func openOVS(c *cli.Context) *ovs.DB {
	address := c.String("ovs-address")
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	}
	db, _ := ovs.Open(c.Context, address, slog.New(slog.DiscardHandler))
	return db
}
