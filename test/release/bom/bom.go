// Package bom lists what programs and images are made of, as a CycloneDX document (ECMA-424). Scanners compare such a
// list with the known vulnerabilities.
package bom

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"

	"github.com/northbound-net/northbound/test/release/image"
)

// debian is the version of Debian whose packages an image has (rootfs.Tested).
const debian = "13"

// Subject is what the document is about.
type Subject struct {
	Name    string // such as localhost/northbound:v1.2.3
	Version string
	Digest  string // of the image: sha256:...
	Time    time.Time
}

// Write writes the document: the Go modules that the programs were linked from, Go's standard library, and the packages
// of Debian. programs are files. The same input gives the same document.
func Write(w io.Writer, s Subject, programs []string, packages []image.Package) error {
	found := map[string]cdx.Component{}
	for _, file := range programs {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the Go modules of %s: %w", file, err)
		}
		library(found, "stdlib", strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			library(found, m.Path, m.Version)
		}
	}
	for _, p := range packages {
		id := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=debian-%s", escape(p.Name), escape(p.Version),
			p.Architecture, debian)
		found[id] = component(id, p.Name, p.Version)
	}
	if len(packages) > 0 {
		found["debian"] = cdx.Component{Type: cdx.ComponentTypeOS, BOMRef: "debian", Name: "debian", Version: debian}
	}
	d := cdx.NewBOM()
	d.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.Name+"@"+s.Digest)).URN()
	d.Metadata = &cdx.Metadata{Timestamp: s.Time.UTC().Format(time.RFC3339), Component: &cdx.Component{
		Type: cdx.ComponentTypeContainer, BOMRef: s.Name, Name: s.Name, Version: s.Version, Hashes: &[]cdx.Hash{
			{Algorithm: cdx.HashAlgoSHA256, Value: strings.TrimPrefix(s.Digest, "sha256:")},
		},
	}}
	all := slices.SortedFunc(maps.Values(found), func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	d.Components = &all
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false) // the references have a "&"
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("writing what %s is made of: %w", s.Name, err)
	}
	return nil
}

// library adds a Go module.
func library(found map[string]cdx.Component, path, version string) {
	id := "pkg:golang/" + path + "@" + escape(version)
	found[id] = component(id, path, version)
}

func component(id, name, version string) cdx.Component {
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: id, PackageURL: id, Name: name, Version: version}
}

// escape is as the package URL specification (ECMA-427) wants it: with "+" escaped, too.
func escape(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") }
