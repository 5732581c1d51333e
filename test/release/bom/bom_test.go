package bom

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/northbound-net/northbound/test/release/image"
)

func subject() Subject {
	return Subject{Name: "localhost/northbound:v1.2.3", Version: "v1.2.3", Digest: "sha256:" + strings.Repeat("ab", 32),
		Time: time.Unix(1767323045, 0)}
}

// The document lists a program's modules, and the packages. It is the same each time.
func TestWrite(t *testing.T) {
	const program = "../../../bin/ovnkube"
	packages := []image.Package{{Name: "libstdc++6", Version: "1:2.3+b~1", Architecture: "amd64"}}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := Write(b, subject(), []string{program, program}, packages); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two documents of the same input differ")
	}
	var d cdx.BOM
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range *d.Components {
		names = append(names, c.BOMRef)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the components are not sorted, or one is there twice: %q", names)
	}
	for _, want := range []string{
		"pkg:deb/debian/libstdc%2B%2B6@1:2.3%2Bb~1?arch=amd64&distro=debian-13", "pkg:golang/k8s.io/client-go@v",
		"pkg:golang/stdlib@1.",
	} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("no component begins with %s: %q", want, names)
		}
	}
	about := d.Metadata.Component
	if about.Name != "localhost/northbound:v1.2.3" || (*about.Hashes)[0].Value != strings.Repeat("ab", 32) ||
		d.Metadata.Timestamp != "2026-01-02T03:04:05Z" {
		t.Errorf("the document is about %+v at %s", about, d.Metadata.Timestamp)
	}
}

// A file that is no Go program is an error.
func TestNoProgram(t *testing.T) {
	err := Write(&bytes.Buffer{}, subject(), []string{"/bin/sh"}, nil)
	if err == nil || !strings.Contains(err.Error(), "reading the Go modules of /bin/sh") {
		t.Errorf("error %v", err)
	}
}
