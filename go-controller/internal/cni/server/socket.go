package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Listen makes the socket, in a directory that only its owner can access. It replaces a stale socket.
func Listen(path string) (*net.UnixListener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the socket's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("closing the socket's directory to others: %w", err)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: another agent does already", path), c.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	// When this agent ends, the path may already be the socket of the next agent.
	l.SetUnlinkOnClose(false)
	return l, nil
}

// peer returns the user id of the process at the other end (unix(7), SO_PEERCRED).
func peer(c *net.UnixConn) (uid uint32, err error) {
	var cred *unix.Ucred
	raw, err := c.SyscallConn()
	if err == nil {
		var credErr error
		err = raw.Control(func(fd uintptr) {
			cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
		err = errors.Join(err, credErr)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the peer's credentials: %w", err)
	}
	return cred.Uid, nil
}
