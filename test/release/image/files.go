package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// entry is a directory, link or file of the image.
type entry struct {
	mode    fs.FileMode // type and permissions
	link    string      // target of a symbolic link
	source  string      // the file on this machine; "" if the content is here
	content []byte
}

// tree maps paths in the image, without a leading slash, to what is there.
type tree map[string]entry

// leftOut reports whether a file is of no use in a container: documentation, translations, and what only an init
// system or an interactive shell reads. The packages' licences stay.
func leftOut(name string) bool {
	if inner, ok := strings.CutPrefix(name, "usr/share/doc/"); ok {
		_, file, within := strings.Cut(inner, "/")
		return within && file != "copyright"
	}
	for _, dir := range []string{
		"usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug", "usr/share/doc-base",
		"usr/share/bash-completion", "usr/share/zsh", "usr/share/pixmaps", "usr/share/perl5", "usr/share/python3",
		"usr/lib/systemd", "usr/lib/python3", "etc/init.d", "etc/cron.daily", "etc/logrotate.d", "etc/kernel", "boot",
	} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	conversions, _ := path.Match("usr/lib/*/gconv", name)
	if !conversions {
		conversions, _ = path.Match("usr/lib/*/gconv/*", name)
	}
	return conversions
}

// files returns the files of the packages, with dpkg's own records of them.
func (s system) files(names []string) (tree, error) {
	all, lists := tree{}, map[string]packageList{}
	for _, name := range names {
		list, err := s.list(name)
		if err != nil {
			return nil, err
		}
		for _, file := range list.paths {
			at, err := s.add(all, file)
			if err != nil {
				return nil, fmt.Errorf("package %s: %w", name, err)
			}
			list.names = append(list.names, at)
		}
		lists[name] = list
	}
	if err := errors.Join(s.addAlternatives(all), s.addSettings(all), s.dropScripts(all)); err != nil {
		return nil, err
	}
	return all, s.record(all, names, lists)
}

// packageList is dpkg's list of a package's files.
type packageList struct {
	base  string   // of dpkg's files for the package: PACKAGE or PACKAGE:ARCHITECTURE
	paths []string // absolute
	names []string // of their entries in the image; some are not in it
}

func (s system) list(name string) (packageList, error) {
	info := filepath.Join(s.root, "var/lib/dpkg/info")
	for _, base := range []string{name, name + ":" + s.packages[name].fields["Architecture"]} {
		text, err := os.ReadFile(filepath.Join(info, base+".list"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return packageList{}, fmt.Errorf("reading the files of package %s: %w", name, err)
		}
		return packageList{base: base, paths: strings.Split(strings.TrimSpace(string(text)), "\n")}, nil
	}
	return packageList{}, fmt.Errorf("package %s: dpkg's list of its files is missing in %s", name, info)
}

// add adds what is at an absolute path of the root filesystem, unless it is left out. It returns the name in the image.
// The name has no symbolic link among its directories: packages may still list /lib, which is usr/lib.
func (s system) add(t tree, file string) (name string, err error) {
	dir, err := securejoin.SecureJoin(s.root, path.Dir(file))
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", file, err)
	}
	source := filepath.Join(dir, path.Base(file))
	if name, err = filepath.Rel(s.root, source); err != nil {
		return "", fmt.Errorf("finding %s: %w", file, err)
	}
	if name == "." || leftOut(name) {
		return name, nil
	}
	info, err := os.Lstat(source)
	if err != nil {
		return "", fmt.Errorf("%w: the root filesystem is not whole: remove %s, and fetch it again", err, s.root)
	}
	e := entry{mode: info.Mode(), source: source}
	switch e.mode.Type() {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if e.link, err = os.Readlink(source); err != nil {
			return "", fmt.Errorf("reading the link: %w", err)
		}
	default:
		return "", fmt.Errorf("%s is neither file, directory nor link: %s", source, info.Mode())
	}
	t[name] = e
	return name, nil
}

// record adds dpkg's database for the packages, and its lists and checksums of those of their files that are in the
// image. `dpkg --verify` and scanners read them.
func (s system) record(t tree, packages []string, lists map[string]packageList) error {
	records := tree{"var/lib/dpkg/info/format": {mode: 0o644, content: []byte("1\n")}} // of the lists' names
	for _, p := range packages {
		list := lists[p]
		base, text := "var/lib/dpkg/info/"+list.base, "/.\n"
		for _, name := range list.names {
			if _, ok := t[name]; ok {
				text += "/" + name + "\n"
			}
		}
		records[base+".list"] = entry{mode: 0o644, content: []byte(text)}
		sums, err := os.ReadFile(filepath.Join(s.root, base+".md5sums"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a package without files has none
			return fmt.Errorf("reading the checksums of package %s: %w", p, err)
		}
		var kept []byte
		for line := range strings.Lines(string(sums)) {
			_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if _, ok := t[name]; ok {
				kept = append(kept, line...)
			}
		}
		records[base+".md5sums"] = entry{mode: 0o644, content: kept}
	}
	records[statusFile] = entry{mode: 0o644, content: s.status(packages)}
	maps.Copy(t, records)
	return nil
}

// addAlternatives adds the links of update-alternatives(1) that lead to files in the image, such as that of
// ovs-vswitchd.
func (s system) addAlternatives(t tree) error {
	const alternatives = "etc/alternatives"
	for _, dir := range []string{"usr/bin", "usr/sbin"} {
		links, err := os.ReadDir(filepath.Join(s.root, dir))
		if err != nil {
			return fmt.Errorf("looking for alternatives: %w", err)
		}
		for _, l := range links {
			target, err := os.Readlink(filepath.Join(s.root, dir, l.Name()))
			if err != nil || path.Dir(target) != "/"+alternatives {
				continue
			}
			final, err := securejoin.SecureJoin(s.root, target)
			if err != nil {
				return fmt.Errorf("following the alternative %s: %w", target, err)
			}
			name, err := filepath.Rel(s.root, final)
			if err != nil {
				return fmt.Errorf("following the alternative %s: %w", target, err)
			}
			if _, ok := t[name]; !ok {
				continue
			}
			for _, link := range []string{"/" + dir + "/" + l.Name(), target} {
				if _, err := s.add(t, link); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addSettings adds the users, and where names are looked up. No package lists these files. Of the users those remain
// that every Debian system has, and tcpdump's own, as whom it writes files.
func (s system) addSettings(t tree) error {
	if _, err := s.add(t, "/etc/nsswitch.conf"); err != nil {
		return err
	}
	for _, file := range []string{"passwd", "group"} {
		every, err := os.ReadFile(filepath.Join(s.root, "usr/share/base-passwd", file+".master"))
		if err != nil {
			return fmt.Errorf("reading the users of every system: %w", err)
		}
		here, err := os.ReadFile(filepath.Join(s.root, "etc", file))
		if err != nil {
			return fmt.Errorf("reading the users: %w", err)
		}
		text := every
		for line := range strings.Lines(string(here)) {
			if strings.HasPrefix(line, "tcpdump:") {
				text = append(text, line...)
			}
		}
		if bytes.Equal(text, every) {
			return fmt.Errorf("%s/etc/%s has no tcpdump, as whom tcpdump writes files", s.root, file)
		}
		t["etc/"+file] = entry{mode: 0o644, content: text}
	}
	return nil
}

// dropScripts removes scripts whose interpreter is not in the image: they could not start.
func (s system) dropScripts(t tree) error {
	for name, e := range t {
		if !e.mode.IsRegular() || e.mode&0o111 == 0 || e.source == "" {
			continue
		}
		interpreter, err := interpreterOf(e.source)
		if err != nil {
			return err
		}
		if interpreter == "" {
			continue
		}
		final, err := securejoin.SecureJoin(s.root, interpreter)
		if err != nil {
			return fmt.Errorf("finding the interpreter of %s: %w", name, err)
		}
		at, err := filepath.Rel(s.root, final)
		if err != nil {
			return fmt.Errorf("finding the interpreter of %s: %w", name, err)
		}
		if _, ok := t[at]; !ok {
			delete(t, name)
		}
	}
	return nil
}

// interpreterOf returns the program that a script names in its first line (execve(2)), or "". `env NAME` stands for
// /usr/bin/NAME.
func interpreterOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the first line of a program: %w", err)
	}
	defer f.Close()
	head := make([]byte, 128)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("reading the first line of a program: %w", err)
	}
	line, script := strings.CutPrefix(string(head[:n]), "#!")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	switch {
	case !script || len(words) == 0:
		return "", nil
	case path.Base(words[0]) == "env" && len(words) > 1:
		i := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
		if i < 0 {
			return words[0], nil
		}
		return "/usr/bin/" + words[1+i], nil
	}
	return words[0], nil
}
