package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pault.ag/go/debian/control"
	"pault.ag/go/debian/dependency"
)

// statusFile is dpkg's database of installed packages (dpkg(1)), below the root directory of a system.
const statusFile = "var/lib/dpkg/status"

// wanted lists the packages that the image is made for. Essential packages come on top (Debian Policy Manual 3.8).
func wanted() []string {
	return []string{
		"ovn-central", "ovn-host", "openvswitch-switch",
		"iproute2", "iputils-ping", "ethtool", "tcpdump", "procps", "bash",
	}
}

// unwanted lists packages that only dependencies name. A container starts no services, makes no users and installs no
// packages. The Python programs of OVN and Open vSwitch would not start with python3 alone: they also need
// python3-openvswitch, which Debian only recommends.
func unwanted() []string { return []string{"systemd", "adduser", "perl-base", "python3"} }

// system is a Debian system that dpkg has installed in a directory.
type system struct {
	root     string
	packages map[string]debianPackage // by name
	provides map[string][]string      // virtual package -> packages
}

// debianPackage is an installed package as dpkg recorded it.
type debianPackage struct {
	record string            // the text
	fields map[string]string // its fields, such as Depends
}

// readSystem reads which packages are installed below root.
func readSystem(root string) (system, error) {
	s := system{root: root, packages: map[string]debianPackage{}, provides: map[string][]string{}}
	text, err := os.ReadFile(filepath.Join(root, statusFile))
	if err != nil {
		return s, fmt.Errorf("reading the packages of the root filesystem: %w: want a Debian system such as "+
			"`bin/sandbox fetch` makes", err)
	}
	for record := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		if err := s.addPackage(record + "\n"); err != nil {
			return s, fmt.Errorf("reading %s/%s: %w", root, statusFile, err)
		}
	}
	return s, nil
}

// addPackage adds the package that a record of dpkg describes, if it is installed.
func (s system) addPackage(record string) error {
	reader, err := control.NewParagraphReader(strings.NewReader(record), nil)
	if err != nil {
		return err
	}
	fields, err := reader.Next()
	if err != nil {
		return fmt.Errorf("record %.60q: %w", record, err)
	}
	if !strings.HasSuffix(fields.Values["Status"], " installed") {
		return nil
	}
	p := debianPackage{record: record, fields: fields.Values}
	s.packages[p.fields["Package"]] = p
	virtual, err := dependency.Parse(p.fields["Provides"])
	if err != nil {
		return fmt.Errorf("what package %s provides: %w", p.fields["Package"], err)
	}
	for _, v := range virtual.GetAllPossibilities() {
		s.provides[v.Name] = append(s.provides[v.Name], p.fields["Package"])
	}
	return nil
}

// closure returns, sorted, the packages of wanted and all Essential ones, with their dependencies, less those of
// unwanted.
func (s system) closure(wanted, unwanted []string) ([]string, error) {
	queue := slices.Clone(wanted)
	for name, p := range s.packages {
		if p.fields["Essential"] == "yes" {
			queue = append(queue, name)
		}
	}
	var errs []error
	found := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if found[name] || slices.Contains(unwanted, name) {
			continue
		}
		if _, ok := s.packages[name]; !ok {
			errs = append(errs, fmt.Errorf("package %s is not installed in %s", name, s.root))
			continue
		}
		found[name] = true
		needs, err := s.needs(name)
		errs = append(errs, err)
		queue = append(queue, needs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// needs returns the installed packages on which a package depends directly. Of alternatives it takes the first one that
// is installed.
func (s system) needs(name string) (all []string, err error) {
	for _, field := range []string{"Pre-Depends", "Depends"} {
		d, err := dependency.Parse(s.packages[name].fields[field])
		if err != nil {
			return nil, fmt.Errorf("reading %s of package %s of %s: %w", field, name, s.root, err)
		}
		for _, relation := range d.Relations {
			found := slices.IndexFunc(relation.Possibilities, s.installed)
			if found < 0 {
				return nil, fmt.Errorf("package %s of %s needs %s, which is not installed", name, s.root, relation)
			}
			one := relation.Possibilities[found].Name
			if _, ok := s.packages[one]; ok {
				all = append(all, one)
				continue
			}
			all = append(all, s.provides[one]...)
		}
	}
	return all, nil
}

func (s system) installed(p dependency.Possibility) bool {
	_, ok := s.packages[p.Name]
	return ok || len(s.provides[p.Name]) > 0
}

// version returns a package's upstream version, such as 25.03.0.
func (s system) version(name string) string {
	v := s.packages[name].fields["Version"]
	if _, after, ok := strings.Cut(v, ":"); ok {
		v = after
	}
	upstream, _, _ := strings.Cut(v, "-")
	return upstream
}

// status returns dpkg's database for some packages: scanners read it.
func (s system) status(names []string) []byte {
	var b []byte
	for _, name := range names {
		b = append(b, s.packages[name].record+"\n"...)
	}
	return b
}
