package cniconf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Files lists the files of a directory that runtimes take for network configurations, by name (libcni.ConfFiles). A
// directory that does not exist has none.
func Files(dir string) (out []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the directory of network configurations: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// MultusFirst tells whether the first configuration of the directory, which is the one that runtimes take, is that of
// Multus. Runtimes pass over a file that is not a configuration.
func MultusFirst(dir string) bool {
	files, err := Files(dir)
	if err != nil {
		return false
	}
	for _, file := range files {
		if first := plugin(filepath.Join(dir, file)); first != "" {
			return IsMultus(first)
		}
	}
	return false
}

// IsMultus is true for the type of Multus' plugin. One works by itself, the other asks a daemon.
func IsMultus(plugin string) bool { return plugin == "multus" || plugin == "multus-shim" }

// plugin is the type of the first plugin of a configuration or of a list of them, "" if it has none.
func plugin(path string) string {
	var c struct {
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &c) != nil {
		return ""
	}
	if c.Type == "" && len(c.Plugins) > 0 {
		return c.Plugins[0].Type
	}
	return c.Type
}
