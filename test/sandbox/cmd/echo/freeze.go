package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// frozen is a TCP connection of which nothing is in flight, as the memory of a virtual machine that moves has it
// (Linux, TCP_REPAIR).
type frozen struct {
	Local, Remote    netip.AddrPort
	Sent, Received   int // sequence numbers
	MSS, Timestamp   int
	SendScale, Scale uint8 // of the windows
	SACK, Timestamps bool
	Window           window
}

// window is struct tcp_repair_window of linux/tcp.h.
type window struct{ SendUpdate, Send, Most, Receive, ReceiveUpdate uint32 }

// option is struct tcp_repair_opt of linux/tcp.h.
type option struct{ code, value uint32 }

// Codes of options, as TCP numbers them (RFC 9293, RFC 7323, RFC 2018).
const (
	optionMSS       = 2
	optionScale     = 3
	optionSACK      = 4
	optionTimestamp = 8
)

// Queues of a connection (linux/tcp.h, TCP_REPAIR_QUEUE).
const (
	receiveQueue = 1
	sendQueue    = 2
)

// freezeTimeout bounds everything that a connection is waited for.
const freezeTimeout = 10 * time.Second

// freeze opens a connection, asks a question on it, and prints the connection. The kernel forgets it then, without a
// word to the other end.
func freeze(address string, out io.Writer) error {
	conn, err := net.DialTimeout("tcp", address, freezeTimeout)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close()
	if _, err := askOn(conn); err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return fmt.Errorf("reaching the socket: %w", err)
	}
	f := frozen{Local: addrPort(conn.LocalAddr()), Remote: addrPort(conn.RemoteAddr())}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f.read(int(fd)) }); err != nil || failed != nil {
		return fmt.Errorf("freezing the connection: %w", errors.Join(err, failed))
	}
	if err := json.NewEncoder(out).Encode(f); err != nil {
		return fmt.Errorf("printing the connection: %w", err)
	}
	return nil
}

// thaw goes on with a connection that freeze has printed: it asks another question, and prints the answer.
func thaw(text string, out io.Writer) error {
	var f frozen
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return fmt.Errorf("reading the connection: %w", err)
	}
	domain := unix.AF_INET
	if f.Local.Addr().Is6() {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "thawed")
	defer file.Close()
	if err := f.write(fd); err != nil {
		return fmt.Errorf("thawing the connection: %w", err)
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("using the connection: %w", err)
	}
	defer conn.Close()
	answer, err := askOn(conn)
	if err != nil {
		return fmt.Errorf("asking on the connection: %w", err)
	}
	_, err = fmt.Fprintln(out, answer)
	return err
}

// askOn asks a question on a connection that stays open, and returns the answer.
func askOn(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(freezeTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: echo\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return strings.TrimSpace(string(body)), err
}

// addrPort is the address of an end of a TCP connection.
func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// read has the kernel freeze the connection, and reads it.
func (f *frozen) read(fd int) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1)
	if err != nil {
		return fmt.Errorf("TCP_REPAIR: %w", err)
	}
	var info struct { // the beginning of struct tcp_info of linux/tcp.h
		State, CAState, Retransmits, Probes, Backoff, Options, Scales, Flags uint8

		RTO, ATO, SendMSS, ReceiveMSS, Unacked uint32
	}
	if err := get(fd, unix.TCP_INFO, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	if info.Unacked != 0 {
		return fmt.Errorf("%d segments are not acknowledged", info.Unacked)
	}
	f.Timestamps, f.SACK = info.Options&1 != 0, info.Options&2 != 0
	f.SendScale, f.Scale = info.Scales&0xf, info.Scales>>4 // two fields of four bits
	if f.MSS, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err != nil {
		return fmt.Errorf("TCP_MAXSEG: %w", err)
	}
	if f.Timestamp, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_TIMESTAMP); err != nil {
		return fmt.Errorf("TCP_TIMESTAMP: %w", err)
	}
	if err := get(fd, unix.TCP_REPAIR_WINDOW, unsafe.Pointer(&f.Window), unsafe.Sizeof(f.Window)); err != nil {
		return fmt.Errorf("TCP_REPAIR_WINDOW: %w", err)
	}
	for queue, number := range map[int]*int{sendQueue: &f.Sent, receiveQueue: &f.Received} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR_QUEUE, queue); err != nil {
			return fmt.Errorf("TCP_REPAIR_QUEUE: %w", err)
		}
		if *number, err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ); err != nil {
			return fmt.Errorf("TCP_QUEUE_SEQ: %w", err)
		}
	}
	return nil
}

// get reads an option of TCP that is a struct.
func get(fd, option int, to unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	if _, _, code := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, uintptr(option), uintptr(to),
		uintptr(unsafe.Pointer(&length)), 0); code != 0 {
		return code
	}
	return nil
}

// put sets an option of TCP that is a struct.
func put(fd, option int, from unsafe.Pointer, size uintptr) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, option, string(unsafe.Slice((*byte)(from), size)))
}

// write makes a new socket the connection.
func (f *frozen) write(fd int) error {
	set := func(name string, option, value int) error {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if err := set("TCP_REPAIR", unix.TCP_REPAIR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, socketAddress(f.Local)); err != nil {
		return fmt.Errorf("having %s: %w", f.Local, err)
	}
	for queue, number := range map[int]int{sendQueue: f.Sent, receiveQueue: f.Received} {
		if err := errors.Join(set("TCP_REPAIR_QUEUE", unix.TCP_REPAIR_QUEUE, queue),
			set("TCP_QUEUE_SEQ", unix.TCP_QUEUE_SEQ, int(int32(uint32(number))))); err != nil {
			return err
		}
	}
	if err := unix.Connect(fd, socketAddress(f.Remote)); err != nil {
		return fmt.Errorf("being connected to %s: %w", f.Remote, err)
	}
	for _, o := range f.options() {
		if err := put(fd, unix.TCP_REPAIR_OPTIONS, unsafe.Pointer(&o), unsafe.Sizeof(o)); err != nil {
			return fmt.Errorf("TCP_REPAIR_OPTIONS %d: %w", o.code, err)
		}
	}
	if err := put(fd, unix.TCP_REPAIR_WINDOW, unsafe.Pointer(&f.Window), unsafe.Sizeof(f.Window)); err != nil {
		return fmt.Errorf("TCP_REPAIR_WINDOW: %w", err)
	}
	return errors.Join(set("TCP_TIMESTAMP", unix.TCP_TIMESTAMP, int(int32(uint32(f.Timestamp)))),
		set("TCP_REPAIR", unix.TCP_REPAIR, 0))
}

// options is what both ends had agreed on.
func (f *frozen) options() []option {
	out := []option{{optionMSS, uint32(f.MSS)}, {optionScale, uint32(f.SendScale) | uint32(f.Scale)<<16}}
	if f.SACK {
		out = append(out, option{code: optionSACK})
	}
	if f.Timestamps {
		out = append(out, option{code: optionTimestamp})
	}
	return out
}

func socketAddress(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
