// Command agnhost-sctp is agnhost on a kernel without SCTP: it answers and asks over SCTP with package sctp, and has
// agnhost, which is beside it as agnhost.kernel, do everything else. On a kernel with SCTP agnhost does that, too.
//
//	agnhost-sctp connect --protocol=sctp [--timeout=DURATION] ADDRESS:PORT
//	agnhost-sctp porter    with SERVE_SCTP_PORT_<port> in its environment
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/sctp"
)

// portPrefix begins the variables that name the ports to serve, as agnhost has it.
const portPrefix = "SERVE_SCTP_PORT_"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && sctp.Usable() == nil {
		switch ports := served(os.Environ()); {
		case args[0] == "porter" && len(ports) > 0:
			return serve(ports)
		case args[0] == "connect":
			if to, timeout, ok := question(args[1:]); ok {
				return connect(to, timeout)
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := self + ".kernel"
	return fmt.Errorf("running %s: %w", program, syscall.Exec(program, append([]string{program}, args...), os.Environ()))
}

// question reads the arguments of connect, among which flags may come last. ok is false if they do not ask for SCTP.
func question(args []string) (to string, timeout time.Duration, ok bool) {
	f := flag.NewFlagSet("connect", flag.ContinueOnError)
	f.SetOutput(io.Discard) // agnhost complains about flags
	protocol := f.String("protocol", "tcp", "")
	f.DurationVar(&timeout, "timeout", time.Minute, "")
	err := f.Parse(args)
	if to = f.Arg(0); err == nil && f.NArg() > 0 {
		err = f.Parse(f.Args()[1:])
	}
	return to, timeout, err == nil && to != "" && f.NArg() == 0 && *protocol == "sctp"
}

// connect asks, with agnhost's errors.
func connect(to string, timeout time.Duration) error {
	addr, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("UNKNOWN: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = sctp.Ask(ctx, addr, []byte("hostname\n"))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("TIMEOUT")
	case errors.Is(err, sctp.ErrAborted), errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("REFUSED")
	case err != nil:
		return fmt.Errorf("OTHER: %w", err)
	}
	return nil
}

// served returns the ports in an environment, and what each answers.
func served(environment []string) map[string]string {
	ports := map[string]string{}
	for _, v := range environment {
		if key, value, ok := strings.Cut(v, "="); ok && strings.HasPrefix(key, portPrefix) {
			ports[strings.TrimPrefix(key, portPrefix)] = value
		}
	}
	return ports
}

// serve answers until a port fails.
func serve(ports map[string]string) error {
	failed := make(chan error, len(ports))
	for port, value := range ports {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return fmt.Errorf("%s%s: want the number of a port: %w", portPrefix, port, err)
		}
		l, err := sctp.Listen(uint16(n))
		if err != nil {
			return fmt.Errorf("serving SCTP port %d: %w", n, err)
		}
		go func() { failed <- l.Serve(func(netip.AddrPort, []byte) []byte { return []byte(value) }) }()
	}
	return <-failed
}
