package podif

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// ifreqData is struct ifreq of linux/if.h with ifr_data in use.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // the union is larger than a pointer
}

// checksumsInSoftware makes the kernel fill in the checksums of what it sends
// through the interface, as `ethtool -K IFACE tx off`. Between two kernels a
// veth passes packets with checksums left to do; Open vSwitch in userspace
// reads and forwards them as they are, and the receiver drops them.
func checksumsInSoftware(iface string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("switching checksum offload of %s off: %w", iface, err)
	}
	defer unix.Close(fd)
	value := ethtoolValue{cmd: unix.ETHTOOL_STXCSUM}
	request := ifreqData{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return fmt.Errorf("switching checksum offload of %s off: %w", iface, errno)
	}
	return nil
}

// computesChecksums tells whether checksumsInSoftware is in effect.
func computesChecksums(iface string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("reading checksum offload of %s: %w", iface, err)
	}
	defer unix.Close(fd)
	value := ethtoolValue{cmd: unix.ETHTOOL_GTXCSUM}
	request := ifreqData{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return false, fmt.Errorf("reading checksum offload of %s: %w", iface, errno)
	}
	return value.data == 0, nil
}
