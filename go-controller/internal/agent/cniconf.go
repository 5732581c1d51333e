package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/cniconf"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// portmap is the plugin that serves hostPort (CNI's own, from its plugins).
const portmap = "portmap"

// conflist is a network configuration list (CNI specification 1.1.0, section 1).
// Runtimes that know version 1.1.0 choose from cniVersions. Older ones read cniVersion.
type conflist struct {
	CNIVersion  string       `json:"cniVersion"`
	CNIVersions []string     `json:"cniVersions,omitempty"`
	Name        string       `json:"name"`
	Plugins     []pluginConf `json:"plugins"`
}

// pluginConf is one plugin of the chain; SNAT and MasqAll are portmap's.
type pluginConf struct {
	Type         string          `json:"type"`
	Socket       string          `json:"socket,omitempty"`
	Capabilities map[string]bool `json:"capabilities,omitempty"`
	SNAT         bool            `json:"snat,omitempty"`
	MasqAll      bool            `json:"masqAll,omitempty"`
}

// confBytes is the file's contents. A connection to a hostPort gets the node's
// management address as its source. So the pod's answer comes back through this node's
// address translation, wherever else the pod's packets leave the cluster.
//
// Multus chooses from cniVersions by itself, and gives the runtime a result of that version, whether or not the runtime
// knows it. So there is nothing to choose behind Multus.
func confBytes(socket string, withPortmap, behindMultus bool) ([]byte, error) {
	plugins := []pluginConf{{Type: names.CNIPlugin, Socket: socket}}
	if withPortmap {
		plugins = append(plugins,
			pluginConf{Type: portmap, Capabilities: map[string]bool{"portMappings": true}, SNAT: true, MasqAll: true})
	}
	conf := conflist{CNIVersion: "1.0.0", CNIVersions: []string{"0.4.0", "1.0.0", "1.1.0"}, Name: "ovn-kubernetes",
		Plugins: plugins}
	if behindMultus {
		conf.CNIVersions = nil
	}
	b, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the CNI configuration: %w", err)
	}
	return append(b, '\n'), nil
}

// keepConf writes the configuration if it is missing or differs. The line says what was
// written, "" for nothing. portmap is part of the chain only while its program exists:
// a chain with a missing plugin fails every pod.
func keepConf(c config.Node) (line string, err error) {
	info, statErr := os.Stat(filepath.Join(c.CNIBinDir, portmap))
	chained := statErr == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
	want, err := confBytes(c.CNISocket(), chained, cniconf.MultusFirst(c.CNIConfDir))
	if err != nil {
		return "", err
	}
	written, err := writeConf(c.CNIConfDir, want)
	if !written {
		return "", err
	}
	line = "+ " + filepath.Join(c.CNIConfDir, names.CNIConfFile)
	if chained {
		return line + " with ovn_cni and portmap", nil
	}
	return line + " with ovn_cni alone: " + c.CNIBinDir + " has no program portmap, so that hostPort is not served", nil
}

// writeConf gives the file in dir these contents, and tells whether it had to write. A
// reader sees the old file or the new one, never a part.
func writeConf(dir string, want []byte) (written bool, err error) {
	path := filepath.Join(dir, names.CNIConfFile)
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, want) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the CNI configuration: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, fmt.Errorf("making the CNI configuration directory: %w", err)
	}
	// Runtimes ignore the temporary file beside it, whose name ends in .tmp.
	if err := atomicfile.Write(path, want, 0o644); err != nil {
		return false, fmt.Errorf("writing the CNI configuration: %w", err)
	}
	return true, nil
}
