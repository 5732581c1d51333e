package image

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// ClassicLinks are the names under which ovnkube does the classic walkthrough.
func ClassicLinks() []string {
	return []string{"ovn-k8s-overlay", "ovn-k8s-util", "ovn-k8s-watcher", "ovn-k8s-gateway-helper"}
}

// programs returns our programs, from a directory on this machine, for machines of an architecture as Debian names it.
func programs(dir, architecture string) (tree, error) {
	t := tree{}
	for _, name := range []string{"ovnkube", "ovn_cni"} {
		file := filepath.Join(dir, name)
		if err := checkProgram(file, architecture); err != nil {
			return nil, err
		}
		t["usr/bin/"+name] = entry{mode: 0o755, source: file}
	}
	for _, name := range ClassicLinks() {
		t["usr/bin/"+name] = entry{mode: os.ModeSymlink, link: "ovnkube"}
	}
	return t, nil
}

// machines maps Debian's names of architectures to those of programs.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
}

// checkProgram returns an error unless a file is a static program for the architecture. A dynamic one would depend on
// what the machine that built it had.
func checkProgram(file, architecture string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("reading program: %w: want a program that `make image` built", err)
	}
	defer f.Close()
	p, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("reading program %s: %w: want a program that `make image` built", file, err)
	}
	for _, segment := range p.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("program %s is not static: build it with CGO_ENABLED=0", file)
		}
	}
	want, ok := machines()[architecture]
	if !ok {
		return fmt.Errorf("the root filesystem has packages for %q: want amd64 or arm64", architecture)
	}
	if p.Machine != want {
		return fmt.Errorf("program %s is for %s, the root filesystem for %s", file, p.Machine, architecture)
	}
	return nil
}
