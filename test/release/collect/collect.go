// Package collect puts the files of a release into one directory, with their checksums.
package collect

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/test/release/deb"
)

// Source says where the files of a release are.
type Source struct {
	Bin          string // directory with what the builds have made
	Changelog    string // file
	Alerts       string // file for Prometheus
	Dashboard    string // file for Grafana
	Version      string // of the programs, such as v1.2.3
	Architecture string // of this machine, as Go and Debian name it
}

// Sums is the file with the checksums, as sha256sum(1) reads it.
const Sums = "SHA256SUMS"

// Into copies the files into a directory, which is made or must be empty. It returns their names. A release, that is a
// version such as v1.2.3, must have a heading in the changelog.
func (s Source) Into(dir string) ([]string, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	if err := s.checkChangelog(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of the release: %w", err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return nil, errors.Join(fmt.Errorf("directory %s has %d files: want an empty one", dir, len(there)), err)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	sums := ""
	for _, name := range names {
		sum, err := copyFile(filepath.Join(dir, name), files[name])
		if err != nil {
			return nil, err
		}
		sums += sum + "  " + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, Sums), []byte(sums), 0o644); err != nil {
		return nil, fmt.Errorf("writing the checksums: %w", err)
	}
	return append(names, Sums), nil
}

// files maps the names of a release's files to the files.
func (s Source) files() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(s.Bin, "chart", "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the chart's version: %w: `make chart` makes the chart", err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return nil, fmt.Errorf("reading the chart's version: %w", err)
	}
	if chart.AppVersion != s.Version {
		return nil, fmt.Errorf("the chart in %s is of version %s, the programs are %s: make all of them again", s.Bin,
			chart.AppVersion, s.Version)
	}
	all := map[string]string{
		"CHANGELOG.md": s.Changelog, "northbound-" + chart.Version + "-alerts.yaml": s.Alerts,
		"northbound-" + chart.Version + "-dashboard.json": s.Dashboard,
	}
	for _, name := range []string{
		"northbound-" + s.Version + ".oci.tar", "northbound-" + s.Version + ".cdx.json",
		"northbound-" + chart.Version + ".tgz", "northbound-" + chart.Version + ".yaml",
		"northbound_" + deb.Version(s.Version) + "_" + s.Architecture + ".deb",
	} {
		all[name] = filepath.Join(s.Bin, name)
	}
	plugins, err := filepath.Glob(filepath.Join(s.Bin, "plugin", "*", "kubectl-northbound*"))
	if err != nil || len(plugins) == 0 {
		return nil, errors.Join(fmt.Errorf("no plugin for kubectl below %s/plugin: `make plugin` makes them", s.Bin), err)
	}
	for _, file := range plugins {
		platform := filepath.Base(filepath.Dir(file))
		all["kubectl-northbound-"+s.Version+"-"+platform+filepath.Ext(file)] = file
	}
	return all, nil
}

// checkChangelog looks for the version's heading, if it is a release and no commit between two.
func (s Source) checkChangelog() error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(s.Version) {
		return nil
	}
	text, err := os.ReadFile(s.Changelog)
	if err != nil {
		return fmt.Errorf("reading the changelog: %w", err)
	}
	if !strings.Contains(string(text), "\n## "+s.Version+"\n") {
		return fmt.Errorf("%s has no heading %q: say there what is new", s.Changelog, "## "+s.Version)
	}
	return nil
}

// copyFile copies a file, with its mode, and returns its SHA-256 in hexadecimal digits.
func copyFile(to, from string) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", fmt.Errorf("copying a file of the release: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return "", fmt.Errorf("copying a file of the release: %w", err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return "", fmt.Errorf("copying a file of the release: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, h), in); err != nil {
		return "", fmt.Errorf("copying a file of the release: %w", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
