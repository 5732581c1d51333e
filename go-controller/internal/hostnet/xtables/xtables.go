package xtables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Table is one table of a network namespace, such as "nat".
type Table struct {
	Name   string
	IPv6   bool // of ip6tables
	Rules  int
	Chains []string // that users have made
	// DropsForwarded is true for a table that drops each forwarded packet that none of its rules accepts.
	DropsForwarded bool
}

// Tables lists the tables that are in use in this network namespace. It needs root.
func Tables() ([]Table, error) {
	var out []Table
	for _, f := range []family{ipv4(), ipv6()} {
		names, err := os.ReadFile("/proc/thread-self/net/" + f.list)
		if errors.Is(err, fs.ErrNotExist) { // the kernel has no such module
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the names of iptables' tables: %w", err)
		}
		for _, name := range strings.Fields(string(names)) {
			t, err := f.read(name)
			if err != nil {
				return nil, fmt.Errorf("reading table %s of the old iptables: %w", name, err)
			}
			t.IPv6 = f.level == unix.IPPROTO_IPV6
			out = append(out, t)
		}
	}
	return out, nil
}

// family is where the two families of iptables differ on 64-bit machines: linux/netfilter_ipv4/ip_tables.h and
// linux/netfilter_ipv6/ip6_tables.h.
type family struct {
	list          string // file with the tables' names
	domain, level int
	target        int // offset of target_offset in an entry; next_offset follows
	head          int // size of an entry without its matches and target
}

func ipv4() family { return family{"ip_tables_names", unix.AF_INET, unix.IPPROTO_IP, 88, 112} }
func ipv6() family { return family{"ip6_tables_names", unix.AF_INET6, unix.IPPROTO_IPV6, 140, 168} }

const (
	getInfo    = 64 // IPT_SO_GET_INFO and IP6T_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES and IP6T_SO_GET_ENTRIES
	nameLength = 32 // XT_TABLE_MAXNAMELEN
	forward    = 2  // NF_INET_FORWARD
	attempts   = 10 // for a table that changes while it is read
)

// info is struct ipt_getinfo.
type info struct {
	Name      [nameLength]byte
	Hooks     uint32
	Entry     [5]uint32
	Underflow [5]uint32
	Entries   uint32
	Size      uint32
}

func (f family) read(name string) (Table, error) {
	// Any socket will do. No packet is sent.
	fd, err := unix.Socket(f.domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return Table{}, fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	for range attempts {
		var i info
		copy(i.Name[:nameLength-1], name)
		if err := getsockopt(fd, f.level, getInfo, unsafe.Pointer(&i), int(unsafe.Sizeof(i))); err != nil {
			return Table{}, err
		}
		// struct ipt_get_entries: the name, the size, 4 bytes to align, the entries.
		const header = nameLength + 8
		answer := make([]byte, header+int(i.Size))
		copy(answer[:nameLength-1], name)
		*(*uint32)(unsafe.Pointer(&answer[nameLength])) = i.Size
		err := getsockopt(fd, f.level, getEntries, unsafe.Pointer(&answer[0]), len(answer))
		if errors.Is(err, unix.EAGAIN) { // its size has changed
			continue
		}
		if err != nil {
			return Table{}, err
		}
		t, err := f.parse(i.Hooks, i.Underflow, answer[header:])
		t.Name = name
		return t, err
	}
	return Table{}, errors.New("it changes all the time")
}

func getsockopt(fd, level, option int, buffer unsafe.Pointer, size int) error {
	length := uint32(size)
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(buffer),
		uintptr(unsafe.Pointer(&length)), 0); e != 0 {
		return e
	}
	return nil
}
