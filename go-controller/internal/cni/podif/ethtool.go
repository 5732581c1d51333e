package podif

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ethtool"
)

// checksumsInSoftware makes the kernel compute the checksums of packets that it sends through the interface, like
// `ethtool -K IFACE tx off`. Otherwise a veth passes packets without checksums on; Open vSwitch in userspace would
// forward them as they are, and the receiver would drop them.
func checksumsInSoftware(iface string) error {
	if _, err := ethtool.Call(iface, unix.ETHTOOL_STXCSUM, 0); err != nil {
		return fmt.Errorf("switching checksum offload of %s off: %w", iface, err)
	}
	return nil
}

// computesChecksums reports whether checksumsInSoftware is in effect.
func computesChecksums(iface string) (bool, error) {
	offload, err := ethtool.Call(iface, unix.ETHTOOL_GTXCSUM, 0)
	if err != nil {
		return false, fmt.Errorf("reading checksum offload of %s: %w", iface, err)
	}
	return offload == 0, nil
}
