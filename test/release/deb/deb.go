// Package deb makes the Debian package: our programs, their systemd units, manual page and completions. Debian's own
// dpkg-deb packs it. The same input makes the same file.
package deb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/release/image"
)

// Source is what a package is made of.
type Source struct {
	Programs     string // directory with ovnkube, ovn_cni and kubectl-northbound, all static
	Units        string // directory with the units and their settings: dist/systemd
	License      string // file
	Version      string // of the programs, such as v1.2.3
	Architecture string // as Debian names it
	Time         time.Time
}

// Build writes the package into a file. dpkg of Debian 12 and Ubuntu 22.04 or later can read it.
func Build(ctx context.Context, s Source, file string) (err error) {
	dir, err := os.MkdirTemp("", "deb-")
	if err != nil {
		return fmt.Errorf("making a directory for the package: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the package has it as /
		return fmt.Errorf("making a directory for the package: %w", err)
	}
	p := pack{dir: dir}
	s.programs(&p)
	s.units(&p)
	s.texts(ctx, &p)
	s.control(&p)
	if p.err != nil {
		return p.err
	}
	if err := date(dir, s.Time); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--root-owner-group", "-Zzstd", "--build", dir, file)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(s.Time.Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("packing %s: %w: %s", file, err, out)
	}
	return nil
}

// pack is the content of a package in a directory. After an error it adds nothing.
type pack struct {
	dir string
	err error
}

// add adds a file.
func (p *pack) add(path string, mode os.FileMode, content []byte) {
	if p.err != nil {
		return
	}
	to := filepath.Join(p.dir, path)
	if p.err = os.MkdirAll(filepath.Dir(to), 0o755); p.err == nil {
		p.err = os.WriteFile(to, content, mode)
	}
	if p.err == nil {
		p.err = os.Chmod(to, mode) // whatever the umask is
	}
}

// copy adds a file of this machine.
func (p *pack) copy(path string, mode os.FileMode, from string) {
	content, err := os.ReadFile(from)
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("reading what is packed: %w", err)
	}
	p.add(path, mode, content)
}

func (s Source) programs(p *pack) {
	p.copy("usr/bin/ovnkube", 0o755, filepath.Join(s.Programs, "ovnkube"))
	p.copy("usr/bin/kubectl-northbound", 0o755, filepath.Join(s.Programs, "kubectl-northbound"))
	p.copy("opt/cni/bin/ovn_cni", 0o755, filepath.Join(s.Programs, "ovn_cni")) // where container runtimes look
	links := map[string]string{
		"usr/bin/kubectl_complete-northbound": "kubectl-northbound", // kubectl's completion looks for it
		"opt/cni/bin/ovn-k8s-cni-overlay":     "ovn_cni",            // Multus calls the plugin by this name
	}
	for _, name := range image.ClassicLinks() {
		links["usr/bin/"+name] = "ovnkube"
	}
	for path, to := range links {
		if p.err == nil {
			p.err = os.Symlink(to, filepath.Join(p.dir, path))
		}
	}
}

// units adds the units, which are not enabled, and their settings. Those may have a token: only root reads them.
func (s Source) units(p *pack) {
	files, err := os.ReadDir(s.Units)
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("reading the units: %w", err)
	}
	settings := ""
	for _, f := range files {
		name, isSettings := strings.CutSuffix(f.Name(), ".default")
		if isSettings {
			p.copy("etc/default/"+name, 0o600, filepath.Join(s.Units, f.Name()))
			settings += "/etc/default/" + name + "\n"
			continue
		}
		p.copy("usr/lib/systemd/system/"+f.Name(), 0o644, filepath.Join(s.Units, f.Name()))
	}
	p.add("DEBIAN/conffiles", 0o644, []byte(settings)) // an upgrade keeps what the operator has changed
}

// texts adds what the programs print about themselves.
func (s Source) texts(ctx context.Context, p *pack) {
	for path, argv := range map[string][]string{
		"usr/share/man/man8/ovnkube.8":                     {"ovnkube", "man"},
		"usr/share/man/man1/kubectl-northbound.1":          {"kubectl-northbound", "man"},
		"usr/share/bash-completion/completions/ovnkube":    {"ovnkube", "completion", "bash"},
		"usr/share/zsh/vendor-completions/_ovnkube":        {"ovnkube", "completion", "zsh"},
		"usr/share/fish/vendor_completions.d/ovnkube.fish": {"ovnkube", "completion", "fish"},
	} {
		text, err := exec.CommandContext(ctx, filepath.Join(s.Programs, argv[0]), argv[1:]...).Output()
		if p.err == nil && err != nil {
			p.err = fmt.Errorf("running %s: %w", strings.Join(argv, " "), err)
		}
		p.add(path, 0o644, text)
	}
	p.copy("usr/share/doc/northbound/copyright", 0o644, s.License)
}

// daemons are the services that the package's scripts restart and stop. They are not enabled by themselves.
const daemons = "ovnkube-master.service ovnkube-node.service"

// control adds what dpkg must know. Source: deb-control(5), deb-postinst(5), deb-prerm(5).
func (s Source) control(p *pack) {
	script := func(body string) []byte {
		return []byte("#!/bin/sh\nset -e\n[ -d /run/systemd/system ] || exit 0\n" + body)
	}
	p.add("DEBIAN/control", 0o644, []byte(fmt.Sprintf(`Package: northbound
Version: %s
Architecture: %s
Maintainer: Northbound
Section: net
Priority: optional
Recommends: openvswitch-switch, ovn-host
Suggests: ovn-central, tcpdump
Homepage: https://github.com/northbound-net/northbound
Description: OVN networking for Kubernetes
 ovnkube keeps OVN's Northbound database equal to what a Kubernetes cluster
 wants, and sets up its nodes. This package is for machines that run it as
 systemd services. /usr/bin/kubectl-northbound is a plugin of kubectl.
`, Version(s.Version), s.Architecture)))
	p.add("DEBIAN/postinst", 0o755, script("systemctl daemon-reload\n"+
		`if [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart `+daemons+"; fi\n"))
	p.add("DEBIAN/prerm", 0o755, script(
		`if [ "$1" = remove ]; then systemctl disable --now `+daemons+"; fi\n"))
	p.add("DEBIAN/postrm", 0o755, script("systemctl daemon-reload\n"))
}

// Version is a version as Debian wants it: it begins with a digit. A commit is older than every release. Source:
// deb-version(7).
func Version(of string) string {
	v := regexp.MustCompile(`[^A-Za-z0-9.+~]`).ReplaceAllString(strings.TrimPrefix(of, "v"), ".")
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+`).MatchString(v) {
		return "0~" + v
	}
	return v
}

// date gives all files the same time.
func date(dir string, t time.Time) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chtimes(path, t, t)
	})
}
