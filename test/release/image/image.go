package image

import (
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Source describes what an image is made of.
type Source struct {
	Root     string    // the directory of an installed Debian system, as package rootfs makes it
	Programs string    // the directory with our static programs, ovnkube and ovn_cni
	Version  string    // of the programs, such as v1.2.3
	Commit   string    // of the programs; "" if it is not known
	Time     time.Time // of the commit: when the image was created, and of the programs' files
}

// Image is an image whose layers are in files.
type Image struct {
	v1.Image
	Name        string    // localhost/northbound:VERSION
	Packages    []Package // of Debian, sorted by name
	OVN         string    // upstream version of OVN
	OpenVSwitch string    // upstream version of Open vSwitch
}

// Package is a package of Debian.
type Package struct{ Name, Version, Architecture string }

// Build makes an image. The files of its layers go into the directory work, and must stay there while the image is
// used.
func Build(s Source, work string) (*Image, error) {
	// A tag of the OCI Distribution Specification 1.1.0.
	if !regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`).MatchString(s.Version) {
		return nil, fmt.Errorf("naming the image after version %q: want at most 128 letters, digits and . _ -", s.Version)
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return nil, fmt.Errorf("looking for the root filesystem: %w", err)
	}
	debian, err := readSystem(root)
	if err != nil {
		return nil, err
	}
	i := &Image{Name: "localhost/northbound:" + s.Version,
		OVN: debian.version("ovn-common"), OpenVSwitch: debian.version("openvswitch-switch")}
	names, err := debian.closure(wanted(), unwanted())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		fields := debian.packages[name].fields
		i.Packages = append(i.Packages, Package{Name: name, Version: fields["Version"], Architecture: fields["Architecture"]})
	}
	architecture := debian.packages["base-files"].fields["Architecture"]
	ours, err := programs(s.Programs, architecture)
	if err != nil {
		return nil, err
	}
	theirs, err := debian.files(names)
	if err != nil {
		return nil, err
	}
	// The time of the files of Debian's packages is fixed: this layer must not change with every commit.
	lower, err := layer(theirs, time.Unix(0, 0), filepath.Join(work, "system.tar.gz"))
	if err != nil {
		return nil, err
	}
	upper, err := layer(ours, s.Time, filepath.Join(work, "programs.tar.gz"))
	if err != nil {
		return nil, err
	}
	i.Image, err = assemble(s, i, architecture, lower, upper)
	return i, err
}

// assemble joins the layers, and describes the image (OCI Image Format Specification 1.1.0, config.md and
// annotations.md).
func assemble(s Source, i *Image, architecture string, lower, upper v1.Layer) (v1.Image, error) {
	at := v1.Time{Time: s.Time.UTC()}
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	joined, err := mutate.Append(base,
		mutate.Addendum{Layer: lower, MediaType: types.OCILayer, History: v1.History{Created: at,
			CreatedBy: "Debian packages of OVN " + i.OVN + ", Open vSwitch " + i.OpenVSwitch}},
		mutate.Addendum{Layer: upper, MediaType: types.OCILayer, History: v1.History{Created: at,
			CreatedBy: "Northbound " + s.Version}})
	if err != nil {
		return nil, fmt.Errorf("joining the layers: %w", err)
	}
	c, err := joined.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = architecture, "linux", at
	c.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/ovnkube"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Northbound",
			"org.opencontainers.image.description": "OVN networking for Kubernetes, with OVN and Open vSwitch",
			"org.opencontainers.image.version":     s.Version,
			"org.opencontainers.image.revision":    s.Commit,
			"org.opencontainers.image.created":     s.Time.UTC().Format(time.RFC3339),
			"org.opencontainers.image.source":      "https://github.com/northbound-net/northbound",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"io.northbound.ovn":                    i.OVN,
			"io.northbound.openvswitch":            i.OpenVSwitch,
		},
	}
	configured, err := mutate.ConfigFile(joined, c)
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	return configured, nil
}
