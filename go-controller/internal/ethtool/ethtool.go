package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call executes a command that passes a struct ethtool_value, such as unix.ETHTOOL_GTXCSUM, on an interface of the
// calling thread's network namespace. It returns the value that the kernel wrote. The error is a unix.Errno.
func Call(link string, command, value uint32) (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	v := struct{ command, value uint32 }{command, value}
	request := struct { // struct ifreq of linux/if.h
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the union is larger than a pointer
	}{data: unsafe.Pointer(&v)}
	copy(request.name[:unix.IFNAMSIZ-1], link)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return 0, errno
	}
	return v.value, nil
}
