package member

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mount is a mount below the new root.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

// buildRoot makes the member's root and changes into it.
func buildRoot(s Spec) error {
	// From here on, mounts do not propagate to the host, nor the host's mounts to here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	root := filepath.Join(s.Dir(), "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := mountAll(root, mounts(s)); err != nil {
		return err
	}
	if err := fill(root, s); err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	// pivot_root(2), "pivot_root(".", ".")".
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// The kubelet must see the mounts of containers and volumes.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared: %w", err)
	}
	return nil
}

func mounts(s Spec) []mount {
	bind := func(source, target string) mount {
		return mount{source: source, target: target, flags: unix.MS_BIND | unix.MS_REC}
	}
	readonly := func(source, target string) mount {
		return mount{source: source, target: target, flags: unix.MS_BIND | unix.MS_RDONLY}
	}
	return []mount{
		{source: "tmpfs", target: "/", kind: "tmpfs", data: "mode=755"},
		readonly(filepath.Join(s.Source, "usr"), "/usr"),
		readonly(filepath.Join(s.Source, "etc/alternatives"), "/etc/alternatives"),
		readonly(s.Bin, BinDir),
		{source: "proc", target: "/proc", kind: "proc"},
		{source: "sysfs", target: "/sys", kind: "sysfs"}, // of the member's network namespace
		bind("/sys/fs/cgroup", "/sys/fs/cgroup"),
		bind("/dev", "/dev"),
		{source: s.State, target: s.State, flags: unix.MS_BIND}, // without the mounts below it, such as the new root
		bind(s.RunDir(), "/run"),
		bind(s.LogDir(), "/var/log"),
	}
}

func mountAll(root string, all []mount) error {
	for _, m := range all {
		target := filepath.Join(root, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, target, m.kind, m.flags&^unix.MS_RDONLY, m.data); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.source, m.target, err)
		}
		if m.flags&unix.MS_RDONLY != 0 { // a bind mount is made read-only by a second call, mount(2)
			if err := unix.Mount("", target, "", m.flags|unix.MS_REMOUNT, ""); err != nil {
				return fmt.Errorf("mounting %s at %s read-only: %w", m.source, m.target, err)
			}
		}
	}
	return nil
}

// fill makes the other files and directories that programs expect.
func fill(root string, s Spec) error {
	dirs := []string{
		"/etc/openvswitch", "/etc/ovn", "/etc/cni/net.d", CNIBinDir, "/root", "/tmp", "/var/tmp", "/var/lib/openvswitch",
		"/run/netns", "/run/lock", "/run/openvswitch", "/run/ovn", "/var/log/pods", "/var/log/containers",
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	// too big for memory, and not possible on an overlay
	for _, d := range []string{"/var/lib/kubelet", "/var/lib/containerd"} {
		if err := bindDir(root, d, filepath.Join(s.Dir(), filepath.Base(d))); err != nil {
			return err
		}
	}
	links := map[string]string{
		"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64", "/var/run": "../run",
		CNIBinDir + "/ovn_cni": BinDir + "/ovn_cni", CNIBinDir + "/loopback": "/usr/lib/cni/loopback",
	}
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			return err
		}
	}
	files := map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "/etc/group": "root:x:0:\n", "/etc/hostname": s.Name + "\n",
		"/etc/hosts":         "127.0.0.1 localhost " + s.Name + "\n::1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n", "/etc/resolv.conf": "",
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func bindDir(root, target, source string) error {
	if err := os.MkdirAll(source, 0o755); err != nil {
		return err
	}
	return mountAll(root, []mount{{source: source, target: target, flags: unix.MS_BIND}})
}
