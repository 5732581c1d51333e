package podif

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/ethtool"
)

// checksumsInSoftware makes the kernel fill in the checksums of what it sends
// through the interface, as `ethtool -K IFACE tx off`. Between two kernels a
// veth passes packets with checksums left to do; Open vSwitch in userspace
// reads and forwards them as they are, and the receiver drops them.
func checksumsInSoftware(iface string) error {
	if _, err := ethtool.Call(iface, unix.ETHTOOL_STXCSUM, 0); err != nil {
		return fmt.Errorf("switching checksum offload of %s off: %w", iface, err)
	}
	return nil
}

// computesChecksums tells whether checksumsInSoftware is in effect.
func computesChecksums(iface string) (bool, error) {
	offload, err := ethtool.Call(iface, unix.ETHTOOL_GTXCSUM, 0)
	if err != nil {
		return false, fmt.Errorf("reading checksum offload of %s: %w", iface, err)
	}
	return offload == 0, nil
}
