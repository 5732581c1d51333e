// Package image makes container images from static programs: an OCI image layout in a tar file, as `ctr images import`
// accepts it (OCI Image Format Specification 1.1.0, image-layout.md). It pulls nothing from a registry.
package image
