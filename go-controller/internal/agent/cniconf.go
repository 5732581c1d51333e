package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ConfName is the file that tells the runtime to use the plugin. Runtimes take
// the first file of the directory in alphabetical order.
const ConfName = "10-ovn-kubernetes.conflist"

// conflist is a network configuration list (CNI specification 1.1.0, section
// 1). cniVersion is what runtimes that know nothing of cniVersions, which came
// with 1.1.0, understand; the others choose from the list.
type conflist struct {
	CNIVersion  string       `json:"cniVersion"`
	CNIVersions []string     `json:"cniVersions"`
	Name        string       `json:"name"`
	Plugins     []pluginConf `json:"plugins"`
}

type pluginConf struct {
	Type   string `json:"type"`
	Socket string `json:"socket"`
}

func confBytes(socket string) ([]byte, error) {
	b, err := json.MarshalIndent(conflist{
		CNIVersion: "1.0.0", CNIVersions: []string{"0.4.0", "1.0.0", "1.1.0"}, Name: "ovn-kubernetes",
		Plugins: []pluginConf{{Type: "ovn_cni", Socket: socket}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the CNI configuration: %w", err)
	}
	return append(b, '\n'), nil
}

// writeConf sees that the file in dir is as it should be, and tells whether it
// had to write it. A reader sees the old file or the new one, never a part.
func writeConf(dir, socket string) (written bool, err error) {
	want, err := confBytes(socket)
	if err != nil {
		return false, err
	}
	path := filepath.Join(dir, ConfName)
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
	// The name ends in none of .conf, .conflist, .json: runtimes skip it.
	tmp, err := os.CreateTemp(dir, "."+ConfName+".*.tmp")
	if err != nil {
		return false, fmt.Errorf("writing the CNI configuration: %w", err)
	}
	_, err = tmp.Write(want)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("writing the CNI configuration: %w", err), os.Remove(tmp.Name()))
	}
	return true, nil
}
