package machines

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/sandbox/node"
)

// buffer is the size of a packet socket's buffer. It must hold what arrives while a busy machine does not read.
const buffer = 64 << 20

// PacketSocket opens a packet socket for one link of the calling thread's network namespace. It waits at most 100 ms
// for a frame.
func PacketSocket(link string) (int, error) {
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8 // in network byte order
	i, err := net.InterfaceByName(link)
	if err != nil {
		return -1, err
	}
	// Without a protocol it gets nothing until it is bound to its link.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: i.Index}))
	if err != nil {
		return -1, errors.Join(fmt.Errorf("opening a packet socket on %s: %w", link, err), unix.Close(fd))
	}
	return fd, nil
}

// Namespace is a network namespace of a machine's pod. The caller closes it.
type Namespace struct{ netns.NsHandle }

// PodNamespace opens the network namespace of a pod that runs on a node.
func PodNamespace(t *testing.T, n *node.Node, namespace, pod string) Namespace {
	t.Helper()
	path, err := n.PodNetwork(namespace, pod)
	if err == nil && path == "" {
		err = fmt.Errorf("%s runs no pod %s/%s", n.Spec.Name, namespace, pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	return Namespace{ns}
}

// Within runs do on a thread in the namespace, as member.Member.Within does.
func (n Namespace) Within(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := netns.Set(n.NsHandle); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}

// Checksum is that of RFC 1071.
func Checksum(b []byte) uint16 {
	var sum uint32
	for i, c := range b {
		sum += uint32(c) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
