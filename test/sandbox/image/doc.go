// Package image makes container images from static programs: an OCI image
// layout in a tar file, which `ctr images import` takes (OCI Image Format
// Specification 1.1.0, image-layout.md). Nothing is pulled from anywhere.
package image
