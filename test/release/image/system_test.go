package image

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/northbound-net/northbound/test/sandbox/cgroup"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

// made is an image of the sandbox's root filesystem.
type made struct {
	*Image
	source  Source
	archive string
	dir     string // the image's files
}

// TestSystem looks at the image that `make image` makes, and runs it.
func TestSystem(t *testing.T) {
	root, err := rootfs.Ensure(t.Context(), rootfs.DefaultCache, rootfs.Tested, progress.New(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	m := made{source: Source{Root: root, Programs: bin, Version: "v0.0.0-test", Time: time.Unix(1767323045, 0)}}
	m.Image, m.archive = archived(t, m.source)
	m.dir = extract(t, m.Image)
	t.Run("programs", m.programs)
	t.Run("libraries", m.libraries)
	t.Run("packages", m.packages)
	t.Run("nothing else", m.nothingElse)
	t.Run("containerd", m.containerd)
	t.Run("reproducible", m.reproducible)
}

func archived(t *testing.T, s Source) (*Image, string) {
	t.Helper()
	i, file := build(t, s), filepath.Join(t.TempDir(), "image.tar")
	if err := i.Archive(file, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return i, file
}

// extract unpacks all layers.
func extract(t *testing.T, i *Image) string {
	t.Helper()
	r := mutate.Extract(i)
	defer r.Close()
	dir := t.TempDir()
	tar := exec.CommandContext(t.Context(), "tar", "-x", "--directory", dir)
	tar.Stdin = r
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("unpacking the image: %v: %s", err, out)
	}
	return dir
}

// run runs a program in the image's files.
func (m made) run(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "chroot", append([]string{m.dir}, argv...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// Programs of OVN, of Open vSwitch and for people at a shell start.
func (m made) programs(t *testing.T) {
	for argv, want := range map[string]string{
		"ovnkube version":          "platform",
		"ovn-k8s-watcher --help":   "ovn-k8s-watcher",
		"ovn_cni":                  "CNI protocol versions supported",
		"ovs-vswitchd --version":   "ovs-vswitchd (Open vSwitch) " + m.OpenVSwitch,
		"ovsdb-server --version":   "ovsdb-server (Open vSwitch) " + m.OpenVSwitch,
		"ovsdb-client --version":   "ovsdb-client (Open vSwitch) " + m.OpenVSwitch,
		"ovsdb-tool --version":     "ovsdb-tool (Open vSwitch) " + m.OpenVSwitch,
		"ovs-vsctl --version":      "ovs-vsctl (Open vSwitch) " + m.OpenVSwitch,
		"ovs-ofctl --version":      "ovs-ofctl (Open vSwitch) " + m.OpenVSwitch,
		"ovs-appctl --version":     "ovs-appctl (Open vSwitch) " + m.OpenVSwitch,
		"ovn-northd --version":     "ovn-northd " + m.OVN,
		"ovn-controller --version": "ovn-controller " + m.OVN,
		"ovn-nbctl --version":      "ovn-nbctl " + m.OVN,
		"ovn-sbctl --version":      "ovn-sbctl " + m.OVN,
		"ovn-trace --version":      "ovn-trace " + m.OVN,
		"ovn-appctl --version":     "ovn-appctl " + m.OVN,
		"ip -V":                    "ip utility",
		"tc -V":                    "tc utility",
		"tcpdump --version":        "tcpdump version",
		"id tcpdump":               "(tcpdump)",
		"ping -V":                  "ping from iputils",
		"ethtool --version":        "ethtool version",
		"modprobe --version":       "kmod version",
		"sysctl --version":         "procps",
		"nsenter --version":        "util-linux",
		"openssl version":          "OpenSSL",
		"which awk":                "/usr/bin/awk",
		"bash -c echo${IFS}$0":     "bash",
		"/bin/sh -c echo${IFS}$0":  "/bin/sh",
	} {
		if have := m.run(t, strings.Fields(argv)...); !strings.Contains(have, want) {
			t.Errorf("%s: have %q, want %q", argv, have, want)
		}
	}
}

// Every program finds its loader and its libraries, and every script its interpreter.
func (m made) libraries(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(m.dir, "usr/lib/*-linux-gnu"))
	if err != nil || len(found) != 1 {
		t.Fatalf("directories of libraries: %q, %v", found, err)
	}
	directories, programs := []string{strings.TrimPrefix(found[0], m.dir), "/usr/lib"}, 0
	m.walk(t, func(name string, info fs.FileInfo) {
		if !info.Mode().IsRegular() {
			return
		}
		file := filepath.Join(m.dir, name)
		if interpreter, err := interpreterOf(file); err != nil || info.Mode()&0o111 != 0 && !m.has(interpreter) {
			t.Errorf("%s: interpreter %s is not in the image, %v", name, interpreter, err)
		}
		program, err := elf.Open(file)
		if err != nil {
			return // not a program
		}
		defer program.Close()
		programs++
		own, err := program.DynString(elf.DT_RUNPATH)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		search := append(slices.Clone(directories), own...)
		needed, err := program.ImportedLibraries()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, library := range needed {
			if !slices.ContainsFunc(search, func(dir string) bool { return m.has(path.Join(dir, library)) }) {
				t.Errorf("%s needs %s, which is not in the image", name, library)
			}
		}
	})
	if programs < 300 {
		t.Errorf("%d programs and libraries, want at least 300", programs)
	}
}

// walk calls visit for everything in the image.
func (m made) walk(t *testing.T, visit func(name string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(m.dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == m.dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		visit(strings.TrimPrefix(file, m.dir+"/"), info)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has reports whether a path of the image leads to something, links followed.
func (m made) has(name string) bool {
	file, err := securejoin.SecureJoin(m.dir, name)
	if err != nil {
		return false
	}
	_, err = os.Stat(file)
	return err == nil
}

// dpkg in the image knows its packages, and finds each of their files as it should be.
func (m made) packages(t *testing.T) {
	names := strings.Fields(m.run(t, "dpkg-query", "-W", "-f", "${Package}\n"))
	slices.Sort(names)
	if want := packageNames(m.Image); !slices.Equal(names, want) {
		t.Errorf("dpkg knows %q, want %q", names, want)
	}
	if wrong := m.run(t, "dpkg", "--verify"); wrong != "" {
		t.Errorf("dpkg --verify says\n%s", wrong)
	}
}

// Every file is one of the packages or of ours, and none tells of the machine that installed them.
func (m made) nothingElse(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "dpkg-query",
		append([]string{"--admindir=" + filepath.Join(m.source.Root, "var/lib/dpkg"), "-L"},
			packageNames(m.Image)...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		dir, err := securejoin.SecureJoin(m.dir, path.Dir(strings.TrimSpace(file)))
		if err != nil {
			t.Fatal(err)
		}
		listed[strings.TrimPrefix(filepath.Join(dir, path.Base(strings.TrimSpace(file))), m.dir+"/")] = true
	}
	others := append(ClassicLinks(), "ovnkube", "ovn_cni")
	m.walk(t, func(name string, info fs.FileInfo) {
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s: mode %s", name, info.Mode())
		}
		switch dir, base := path.Split(name); {
		case listed[name], dir == "usr/bin/" && slices.Contains(others, base), strings.HasPrefix(name, "var/lib/dpkg/"),
			name == "etc/passwd", name == "etc/group", name == "etc/nsswitch.conf", dir == "etc/alternatives/":
		default:
			if target, _ := os.Readlink(filepath.Join(m.dir, name)); !strings.HasPrefix(target, "/etc/alternatives/") {
				t.Errorf("%s is not in any list", name)
			}
		}
	})
	for _, name := range []string{
		"etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/hosts", "etc/openvswitch/conf.db", "etc/shadow",
		"var/lib/dpkg/status-old", "var/cache/apt", "var/log/dpkg.log", "usr/share/man", "usr/share/locale/de",
		"usr/share/doc/bash/README", "usr/bin/apt", "usr/bin/containerd", "usr/bin/python3", "usr/bin/ovs-tcpdump",
	} {
		if m.has(name) {
			t.Errorf("%s is in the image", name)
		}
	}
	if !m.has("usr/share/doc/bash/copyright") {
		t.Error("the licence of bash is not in the image")
	}
}

// inContainerd runs containerd on a root filesystem, imports an image and runs a container. All processes and mounts
// end with the namespaces. The files that containerd and the root filesystem change are in memory.
const inContainerd = `
root=$1 archive=$2 image=$3 group=$4 work=$5
mount -t tmpfs tmpfs "$work"
cd "$work"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=$root,upperdir=upper,workdir=work" root
mount -t proc proc root/proc
mount --rbind /sys root/sys
mount --rbind /dev root/dev
mount -t tmpfs tmpfs root/run
mkdir -p root/var/lib/containerd
mount -t tmpfs tmpfs root/var/lib/containerd
cp "$archive" root/run/image.tar
chroot root containerd >log 2>&1 &
until chroot root ctr version >/dev/null 2>&1; do kill -0 $! || { cat log; exit 1; }; done
chroot root ctr -n k8s.io images import /run/image.tar
chroot root ctr -n k8s.io images ls
chroot root ctr -n k8s.io run --rm --cgroup "/$group/test" "$image" test ovnkube version
chroot root ctr -n k8s.io run --rm --cgroup "/$group/test" "$image" test
`

// The root filesystem's containerd imports the archive under the name and digest that we print, and runs it.
func (m made) containerd(t *testing.T) {
	const group = "northbound-image-test"
	if err := cgroup.Make(group); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := cgroup.Remove(ctx, group); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-euc",
		inContainerd, "bash", m.source.Root, m.archive, m.Name, group, t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{m.Name, digest(t, m), "platform", "OVN networking for Kubernetes"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// The same packages and programs give the same image and archive, wherever they lie and whatever happened to the root
// filesystem since.
func (m made) reproducible(t *testing.T) {
	s := m.source
	s.Root, s.Programs = filepath.Join(t.TempDir(), "copy"), t.TempDir()
	for _, argv := range [][]string{
		{"cp", "--recursive", "--no-dereference", "--preserve=mode,links", m.source.Root, s.Root}, // with other times
		{"cp", filepath.Join(bin, "ovnkube"), filepath.Join(bin, "ovn_cni"), s.Programs},
		{"chown", "--recursive", "--no-dereference", "7:7", filepath.Join(s.Root, "etc")},
	} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	for _, name := range []string{"etc/resolv.conf", "etc/hostname", "root/.bash_history", "var/log/dpkg.log",
		"usr/bin/stranger"} {
		put(t, s.Root, name, "another", 0o755)
	}
	again, file := archived(t, s)
	if digest(t, again) != digest(t, m) {
		t.Errorf("digest %s, then %s", digest(t, m), digest(t, again))
	}
	if first, second := sum(t, m.archive), sum(t, file); first != second {
		t.Errorf("archive %s, then %s", first, second)
	}
}

func sum(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
