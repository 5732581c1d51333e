package conformance

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/image"
)

// dnsImage is the image of cluster DNS. No registry has it.
const dnsImage = "localhost/dns:1"

// hostPackages are Debian packages whose programs go into the images.
func hostPackages() []string {
	return []string{"busybox-static", "curl", "netcat-openbsd", "bind9-dnsutils", "wget", "dash"}
}

// tools are programs that specs run in their pods and that busybox does not have. One is a shell: busybox's shell would
// run its own applets, such as its nc without -v, whatever /bin/nc is. Another is wget: busybox is static, and if there
// is a libc beside it, its wget crashes when it looks up a host.
func tools() map[string]string {
	return map[string]string{
		"/bin/sh":       "/usr/bin/dash",
		"/bin/curl":     "/usr/bin/curl",
		"/bin/nc":       "/usr/bin/nc",
		"/bin/dig":      "/usr/bin/dig",
		"/bin/nslookup": "/usr/bin/nslookup",
		"/bin/getent":   "/usr/bin/getent",
		"/bin/wget":     "/usr/bin/wget",
	}
}

// contents returns how to make the image of a spec, by the last part of its repository's name.
func contents(ctx context.Context, bin string) (map[string]image.Image, error) {
	links, err := applets(ctx)
	if err != nil {
		return nil, err
	}
	data, err := withLibraries(ctx, tools())
	if err != nil {
		return nil, err
	}
	for file := range data {
		delete(links, file) // the real program replaces busybox's
	}
	shell := image.Image{Links: links, Data: data, Files: map[string]string{"/bin/busybox": "/usr/bin/busybox"}}
	agnhost, busybox := shell, shell
	agnhost.Entrypoint, agnhost.Cmd = []string{"/agnhost"}, []string{"pause"}
	agnhost.Files = map[string]string{"/bin/busybox": "/usr/bin/busybox",
		"/agnhost": filepath.Join(bin, "agnhost-sctp"), "/agnhost.kernel": filepath.Join(bin, "agnhost")}
	agnhost.Data = maps.Clone(data)
	for _, name := range []string{"localhost.crt", "localhost.key"} { // for `agnhost porter`
		agnhost.Data["/"+name] = filepath.Join(bin, "agnhost.d", name)
	}
	agnhost.Files["/coredns"] = filepath.Join(bin, "dns")
	busybox.Cmd = []string{"sh"}
	return map[string]image.Image{
		"agnhost":           agnhost,
		"busybox":           busybox,
		"glibc-dns-testing": busybox,
		"regression-issue-74839": {Entrypoint: []string{"/boom-server"},
			Files: map[string]string{"/boom-server": filepath.Join(bin, "boom-server")}},
		"pause": {Entrypoint: []string{"/bin/pause"}, Files: map[string]string{"/bin/pause": filepath.Join(bin, "pause")}},
	}, nil
}

// applets returns the links to busybox.
func applets(ctx context.Context) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "/usr/bin/busybox", "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox for its applets: %w", err)
	}
	links := map[string]string{}
	for name := range strings.Lines(string(out)) {
		links["/bin/"+strings.TrimSpace(name)] = "busybox"
	}
	delete(links, "/bin/busybox") // not a link to itself
	return links, nil
}

// withLibraries returns programs (path in the image -> file on this machine), with the loader and the libraries at the
// paths where the loader looks for them.
func withLibraries(ctx context.Context, programs map[string]string) (map[string]string, error) {
	files := maps.Clone(programs)
	for _, p := range programs {
		out, err := exec.CommandContext(ctx, "ldd", p).Output()
		if err != nil {
			return nil, fmt.Errorf("asking ldd for the libraries of %s: %w", p, err)
		}
		for line := range strings.Lines(string(out)) {
			for _, word := range strings.Fields(line) { // "libc.so.6 => /lib/libc.so.6 (0x7f...)", ldd(1)
				if strings.HasPrefix(word, "/") {
					files[word] = word
				}
			}
		}
	}
	return files, nil
}

// specImages returns the images that specs use, and that of cluster DNS, and their names. All versions of an image are
// the same. program, e2e.test, lists the names.
func specImages(ctx context.Context, bin, program string) (known map[string]image.Image, names map[string][]string,
	err error) {
	out, err := exec.CommandContext(ctx, program, "--list-images").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("asking e2e.test for its images: %w", err)
	}
	if known, err = contents(ctx, bin); err != nil {
		return nil, nil, err
	}
	known["dns"] = image.Image{Entrypoint: []string{"/dns"}, Files: map[string]string{"/dns": filepath.Join(bin, "dns")}}
	names = map[string][]string{"dns": {dnsImage}}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		repository, _, _ := strings.Cut(path.Base(lines.Text()), ":")
		if _, ok := known[repository]; ok {
			names[repository] = append(names[repository], lines.Text())
		}
	}
	return known, names, nil
}

// imageFile is an image in a tar file, with its names.
type imageFile struct {
	file  string
	names []string // the file has the first
}

// writeImages makes images in dir.
func writeImages(dir string, known map[string]image.Image, names map[string][]string) (all []imageFile, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making images: %w", err)
	}
	for repository, i := range known {
		if len(names[repository]) == 0 {
			return nil, fmt.Errorf("making images: %s has no name", repository)
		}
		i.Name = names[repository][0]
		file := filepath.Join(dir, "conformance-"+repository+".tar")
		if err := i.Write(file); err != nil {
			return nil, err
		}
		all = append(all, imageFile{file, names[repository]})
	}
	return all, nil
}
