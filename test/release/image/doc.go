// Package image makes Northbound's container image from an installed Debian system and from our static programs, as an
// OCI image (OCI Image Format Specification 1.1.0). It needs no container engine.
//
// The image has two layers, so that a new build of ours changes only the small one. The layer "system" holds the files
// of the Debian packages that OVN, Open vSwitch and a shell need. The layer "programs" holds ours.
//
// The same inputs give the same digest: entries are sorted, owned by root, and carry fixed times. Files come from
// dpkg's lists of files. So nothing that a package's installation or the host left behind gets in.
package image
