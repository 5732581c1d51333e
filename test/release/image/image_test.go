package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const bin = "../../../bin" // `make sandbox` builds the programs there

// small is a root filesystem with little in it. Package "tool" is one that tcpdump needs.
func small(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	status := ""
	pack := func(name, fields string, files ...string) {
		status += "Package: " + name + "\nStatus: install ok installed\nVersion: 1:2.3-4\nArchitecture: amd64\n" + fields +
			"Description: x\n more\n\n"
		put(t, root, "var/lib/dpkg/info/"+name+".list", "/.\n"+strings.Join(files, "\n")+"\n", 0o644)
		for _, f := range files {
			if _, err := os.Lstat(filepath.Join(root, f)); err != nil {
				put(t, root, f, "content of "+f, 0o644)
			}
		}
	}
	link(t, root, "lib", "usr/lib")
	put(t, root, "usr/bin/sh", "", 0o755)
	put(t, root, "usr/bin/script", "#!/bin/sh\n", 0o755)
	put(t, root, "usr/bin/snake", "#!/usr/bin/env python3\n", 0o755)
	link(t, root, "bin", "usr/bin")
	put(t, root, "usr/lib/real", "", 0o755|os.ModeSetuid)
	link(t, root, "etc/alternatives/choice", "/usr/lib/real")
	link(t, root, "usr/sbin/choice", "/etc/alternatives/choice")
	link(t, root, "etc/alternatives/other", "/usr/bin/other")
	link(t, root, "usr/bin/other-name", "/etc/alternatives/other")
	put(t, root, "etc/nsswitch.conf", "hosts: files dns\n", 0o644)
	for _, file := range []string{"passwd", "group"} {
		put(t, root, "usr/share/base-passwd/"+file+".master", "root:*:0\n", 0o644)
		put(t, root, "etc/"+file, "root:x:0\nsomebody:x:7\ntcpdump:x:101\n", 0o644)
	}
	put(t, root, "etc/machine-id", "1234", 0o444)
	pack("base-files", "Essential: yes\nConffiles:\n /etc/x 1234\n", "/bin", "/lib", "/usr/bin/sh",
		"/usr/share/doc/base-files/copyright", "/usr/share/doc/base-files/README", "/usr/share/doc/base-files",
		"/usr/share/man/man1/sh.1.gz")
	for _, w := range wanted() {
		if w != "tcpdump" {
			pack(w, "")
		}
	}
	pack("ovn-common", "")
	pack("tcpdump", "Depends: absent | virtual (>= 1), systemd\nPre-Depends: base-files\n",
		"/usr/bin/snake", "/usr/bin/script")
	pack("tool", "Provides: virtual (= 1)\n", "/lib/real")
	pack("systemd", "Depends: hanger-on\n", "/usr/bin/systemctl")
	pack("hanger-on", "", "/usr/bin/other")
	put(t, root, "var/lib/dpkg/info/tool.md5sums", "aaaa  usr/lib/real\nbbbb  usr/share/man/x\n", 0o644)
	put(t, root, statusFile, status, 0o644)
	return root
}

func put(t *testing.T, root, file, text string, mode os.FileMode) {
	t.Helper()
	file = filepath.Join(root, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600),
		os.Chmod(file, mode)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, root, file, target string) {
	t.Helper()
	file = filepath.Join(root, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(target, file)); err != nil {
		t.Fatal(err)
	}
}

// source describes an image of a small root filesystem, with the smaller one of our programs in place of both.
func source(t *testing.T) Source {
	t.Helper()
	programs := t.TempDir()
	program, err := filepath.Abs(filepath.Join(bin, "ovn_cni"))
	if err != nil {
		t.Fatal(err)
	}
	link(t, programs, "ovn_cni", program)
	link(t, programs, "ovnkube", program)
	return Source{Root: small(t), Programs: programs, Version: "v1.2.3", Commit: "0123", Time: time.Unix(1767323045, 0)}
}

func build(t *testing.T, s Source) *Image {
	t.Helper()
	i, err := Build(s, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// layers returns the digests of an image's layers.
func layers(t *testing.T, i *Image) (digests []string) {
	t.Helper()
	all, err := i.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		d, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.String())
	}
	return digests
}

// contents lists a layer: name, mode, link or content.
func contents(t *testing.T, i *Image, number int) map[string]string {
	t.Helper()
	all, err := i.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := all[number].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	have := map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return have
		}
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if h.Size < 10000 {
			if _, err := io.Copy(&text, tr); err != nil {
				t.Fatal(err)
			}
		}
		have[h.Name] = fmt.Sprintf("%o %s%s", h.Mode, h.Linkname, text.String())
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s belongs to %d:%d %s, want root", h.Name, h.Uid, h.Gid, h.Uname)
		}
	}
}

func packageNames(i *Image) (names []string) {
	for _, p := range i.Packages {
		names = append(names, p.Name)
	}
	return names
}

// Files of the packages and their dependencies are in the image, and no others.
func TestContents(t *testing.T) {
	i := build(t, source(t))
	if want := append(wanted(), "base-files", "tool"); !slices.Equal(packageNames(i), slices.Sorted(slices.Values(want))) {
		t.Errorf("packages %q, want %q", i.Packages, want)
	}
	have := contents(t, i, 0)
	status := have[statusFile]
	maps.DeleteFunc(have, func(name, _ string) bool { return strings.HasPrefix(name, "var/lib/dpkg/") })
	want := map[string]string{
		"bin": "777 usr/bin", "lib": "777 usr/lib", "usr/bin/sh": "755 ", "usr/bin/script": "755 #!/bin/sh\n",
		"usr/share/doc/base-files/":          "755 ",
		"usr/share/doc/base-files/copyright": "644 content of /usr/share/doc/base-files/copyright",
		"usr/lib/real":                       "755 ",
		"etc/alternatives/choice":            "777 /usr/lib/real", "usr/sbin/choice": "777 /etc/alternatives/choice",
		"etc/nsswitch.conf": "644 hosts: files dns\n",
		"etc/passwd":        "644 root:*:0\ntcpdump:x:101\n", "etc/group": "644 root:*:0\ntcpdump:x:101\n",
	}
	if !maps.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
	if !strings.Contains(status, "\nConffiles:\n /etc/x 1234\n") || strings.Contains(status, "hanger-on\nStatus") {
		t.Errorf("dpkg's status is\n%s", status)
	}
	have = contents(t, i, 0)
	if list, sums := have["var/lib/dpkg/info/tool.list"], have["var/lib/dpkg/info/tool.md5sums"]; list !=
		"644 /.\n/usr/lib/real\n" || sums != "644 aaaa  usr/lib/real\n" {
		t.Errorf("dpkg's records of tool: %q, %q", list, sums)
	}
	if list := have["var/lib/dpkg/info/tcpdump.list"]; strings.Contains(list, "snake") {
		t.Errorf("dpkg's list names a script that was dropped: %q", list)
	}
	programs := contents(t, i, 1)
	if names := slices.Sorted(maps.Keys(programs)); len(names) != 2+len(ClassicLinks()) ||
		programs["usr/bin/ovn-k8s-util"] != "777 ovnkube" {
		t.Errorf("layer of programs: %q", names)
	}
}

// The image describes itself.
func TestConfiguration(t *testing.T) {
	c, err := build(t, source(t)).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := c.Config.Labels
	if c.Config.Entrypoint[0] != "/usr/bin/ovnkube" || c.Architecture != "amd64" || c.OS != "linux" ||
		!c.Created.Equal(time.Unix(1767323045, 0)) || labels["org.opencontainers.image.version"] != "v1.2.3" ||
		labels["org.opencontainers.image.revision"] != "0123" || labels["io.northbound.ovn"] != "2.3" ||
		labels["org.opencontainers.image.created"] != "2026-01-02T03:04:05Z" {
		t.Errorf("configuration %+v, labels %q", c, labels)
	}
}

// Another commit of ours leaves the layer of Debian's files as it is. So does what installing left behind.
func TestLayers(t *testing.T) {
	s := source(t)
	first := layers(t, build(t, s))
	s.Time, s.Version = s.Time.Add(time.Hour), "v1.2.4"
	put(t, s.Root, "usr/bin/stranger", "", 0o755)
	put(t, s.Root, "etc/machine-id.new", "", 0o644)
	second := layers(t, build(t, s))
	if first[0] != second[0] || first[1] == second[1] {
		t.Errorf("layers %q and %q, want that only the second differs", first, second)
	}
}

// What cannot become an image is refused, with what to do.
func TestRefused(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *Source)
		want   string
	}{
		{"no Debian system", func(_ *testing.T, s *Source) { s.Root = empty }, "want a Debian system such as"},
		{"no directory", func(_ *testing.T, s *Source) { s.Root = "/nonexistent" }, "looking for the root filesystem"},
		{"no tag", func(_ *testing.T, s *Source) { s.Version = "v1+dirty" }, `version "v1+dirty": want at most 128`},
		{"no version", func(_ *testing.T, s *Source) { s.Version = "" }, `version "": want`},
		{"no programs", func(_ *testing.T, s *Source) { s.Programs = empty }, "want a program that `make image` built"},
		{"dynamic program", func(t *testing.T, s *Source) {
			s.Programs = t.TempDir()
			link(t, s.Programs, "ovnkube", "/bin/ls")
		}, "ovnkube is not static: build it with CGO_ENABLED=0"},
		{"another machine", func(t *testing.T, s *Source) {
			replace(t, s.Root, statusFile, "Architecture: amd64", "Architecture: arm64")
		}, "is for EM_X86_64, the root filesystem for arm64"},
		{"no such machine", func(t *testing.T, s *Source) {
			replace(t, s.Root, statusFile, "Architecture: amd64", "Architecture: mips")
		}, `has packages for "mips": want amd64 or arm64`},
		{"missing package", func(t *testing.T, s *Source) {
			replace(t, s.Root, statusFile, "Package: ovn-host", "Package: ovn-guest")
		}, "package ovn-host is not installed"},
		{"removed package", func(t *testing.T, s *Source) {
			replace(t, s.Root, statusFile, "Package: ovn-host\nStatus: install ok installed",
				"Package: ovn-host\nStatus: deinstall ok config-files")
		}, "package ovn-host is not installed"},
		{"missing dependency", func(t *testing.T, s *Source) {
			replace(t, s.Root, statusFile, "Provides: virtual (= 1)\n", "")
		}, "package tcpdump of "},
		{"missing file", func(t *testing.T, s *Source) {
			if err := os.Remove(filepath.Join(s.Root, "usr/lib/real")); err != nil {
				t.Fatal(err)
			}
		}, "package tool: lstat "},
		{"missing list", func(t *testing.T, s *Source) {
			if err := os.Remove(filepath.Join(s.Root, "var/lib/dpkg/info/tool.list")); err != nil {
				t.Fatal(err)
			}
		}, "package tool: dpkg's list of its files is missing"},
		{"missing user", func(t *testing.T, s *Source) {
			replace(t, s.Root, "etc/passwd", "tcpdump", "x")
		}, "has no tcpdump"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := source(t)
			c.change(t, &s)
			if _, err := Build(s, t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Build: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func replace(t *testing.T, root, file, before, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil || !bytes.Contains(text, []byte(before)) {
		t.Fatalf("%s has no %q: %v", file, before, err)
	}
	put(t, root, file, strings.ReplaceAll(string(text), before, after), 0o644)
}

// What a registry has got is the image, to the digest.
func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of whoever runs the test
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	i := build(t, source(t))
	reference := strings.TrimPrefix(server.URL, "http://") + "/northbound:v1.2.3"
	if err := i.Push(t.Context(), reference); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	if have, want := digest(t, pulled), digest(t, i); have != want {
		t.Errorf("the registry has %s, want %s", have, want)
	}
	for _, bad := range []string{"northbound:v1", "127.0.0.1:1/northbound", "127.0.0.1:1/North:v1"} {
		if err := i.Push(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "want REGISTRY/REPOSITORY:TAG") {
			t.Errorf("pushing to %s: %v, want an error that says what a name looks like", bad, err)
		}
	}
	server.Close()
	if err := i.Push(t.Context(), reference); err == nil || !strings.Contains(err.Error(), "pushing to "+reference) {
		t.Errorf("pushing without a registry: %v", err)
	}
}

func digest(t *testing.T, i v1.Image) string {
	t.Helper()
	d, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// An image says of itself what the program in it says.
func TestIdentify(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ovnkube")
	says := func(json string) { put(t, "", program, "#!/bin/sh\necho '"+json+"'\n", 0o755) }
	var s Source
	says(`{"version": "v1", "commit": "c", "commitTime": "2026-01-02T03:04:05Z"}`)
	if err := s.Identify(t.Context(), program, ""); err != nil || s.Version != "v1" || s.Commit != "c" ||
		s.Time.Unix() != 1767323045 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := s.Identify(t.Context(), program, "5"); err != nil || s.Time.Unix() != 5 {
		t.Errorf("with SOURCE_DATE_EPOCH: %+v, %v", s, err)
	}
	for text, want := range map[string]string{
		`{"version": "(devel)"}`: "has no version: build in a git checkout, or with NORTHBOUND_VERSION",
		`{"version": "v1"}`:      "set SOURCE_DATE_EPOCH", `x`: "reading the version of",
	} {
		says(text)
		if err := s.Identify(t.Context(), program, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	says(`{"version": "v1"}`)
	if err := s.Identify(t.Context(), program, "noon"); err == nil || !strings.Contains(err.Error(), `"noon"`) {
		t.Errorf("SOURCE_DATE_EPOCH=noon: %v", err)
	}
	if err := s.Identify(t.Context(), "/nonexistent", ""); err == nil || !strings.Contains(err.Error(), "asking") {
		t.Errorf("without a program: %v", err)
	}
}
