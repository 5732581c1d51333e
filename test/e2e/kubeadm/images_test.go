package kubeadm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/image"
)

// repository stands for the registry of Kubernetes' images, which the test does not reach.
const repository = "localhost/kubeadm"

// programs is the directory of Kubernetes' programs.
func (b *bed) programs() string { return filepath.Join(b.Options.BinDir, "kubernetes") }

// version is the version of kubeadm, and of everything that it installs.
func (b *bed) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(b.programs(), "kubeadm"), "version", "--output=short").Output()
	if err != nil {
		return "", fmt.Errorf("asking kubeadm for its version (`make kubeadm` builds it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// images makes the images that kubeadm asks for, and those of the sandbox. It returns their files for each role.
func (b *bed) images(ctx context.Context, source string) (map[string][]string, error) {
	version, err := b.version(ctx)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(b.programs(), "kubeadm"), "config", "images", "list",
		"--image-repository="+repository, "--kubernetes-version="+version).Output()
	if err != nil {
		return nil, fmt.Errorf("asking kubeadm for its images: %w", err)
	}
	dir := filepath.Join(b.Options.State(), "images")
	everywhere, err := image.Sandbox(dir, b.Options.BinDir, filepath.Join(source, "usr/bin/busybox"))
	if err != nil {
		return nil, err
	}
	files := map[string][]string{"worker": everywhere}
	for _, name := range strings.Fields(string(out)) {
		program, _, _ := strings.Cut(path.Base(name), ":")
		i := image.Image{Name: name, Files: map[string]string{"/bin/" + program: filepath.Join(b.programs(), program)}}
		roles := []string{"control plane"}
		switch program {
		case "pause":
			i.Files["/bin/pause"] = filepath.Join(b.Options.BinDir, "pause")
			i.Entrypoint = []string{"/bin/pause"}
			roles = append(roles, "worker")
		case "coredns":
			i.Entrypoint = []string{"/bin/coredns"}
			roles = append(roles, "worker")
		case "kube-proxy":
			roles = append(roles, "worker")
			if err := addProxy(ctx, &i, source, filepath.Join(b.programs(), program)); err != nil {
				return nil, err
			}
		}
		file := filepath.Join(dir, "kubeadm-"+program+".tar")
		if err := i.Write(file); err != nil {
			return nil, err
		}
		for _, role := range roles {
			files[role] = append(files[role], file)
		}
	}
	files["control plane"] = append(files["control plane"], everywhere...)
	return files, nil
}

// addProxy adds kube-proxy where its DaemonSet expects it, and iptables.
func addProxy(ctx context.Context, i *image.Image, source, program string) error {
	i.Files = map[string]string{"/usr/local/bin/kube-proxy": program}
	i.Links = map[string]string{"/bin/kube-proxy": "/usr/local/bin/kube-proxy"}
	return addIptables(ctx, i, source)
}

// addIptables adds Debian's iptables with its modules, and the libraries of all of them.
func addIptables(ctx context.Context, i *image.Image, source string) error {
	const iptables = "/usr/sbin/xtables-nft-multi"
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			i.Links["/bin/"+family+suffix] = iptables
		}
	}
	i.Data = map[string]string{iptables: filepath.Join(source, iptables)}
	modules, err := filepath.Glob(filepath.Join(source, "usr/lib/*/xtables/*.so"))
	if err != nil {
		return err
	}
	for _, file := range modules {
		if _, err := os.Stat(file); err != nil {
			return err
		}
		i.Data[strings.TrimPrefix(file, source)] = file
	}
	out, err := exec.CommandContext(ctx, "chroot", append([]string{source, "ldd"},
		slices.Sorted(maps.Keys(i.Data))...)...).Output()
	if err != nil {
		return fmt.Errorf("asking ldd for the libraries of iptables: %w", err)
	}
	for line := range strings.Lines(string(out)) { // "libc.so.6 => /lib/libc.so.6 (0x7f...)", ldd(1)
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") {
				i.Data[word] = filepath.Join(source, word)
			}
		}
	}
	return nil
}
