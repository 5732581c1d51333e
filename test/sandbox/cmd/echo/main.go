// Command echo is the client and the server of the tests' connections.
//
//	echo serve [PORT]                               answers on TCP (HTTP), UDP and SCTP
//	echo ask tcp|udp|sctp HOST:PORT [COUNT [WAIT]]  asks that often, WAIT for each answer
//	echo questions [WAIT]                           asks all lines "tcp|udp|sctp HOST:PORT" of its input, 64 at a time
//	echo crowd [WAIT]                               opens connections for all lines "tcp|udp HOST:PORT", then asks
//	echo mirror HOST:PORT COUNT SIZE                asks that often over UDP, with SIZE bytes for as many
//	echo flood HOST:PORT COUNT SIZE                 sends COUNT UDP datagrams of SIZE bytes
//	echo stray ADDRESS                              sends packets that belong to no connection
//	echo freeze HOST:PORT                           asks on a TCP connection, and prints it, as one that moves
//	echo thaw CONNECTION                            asks on it once more, also on another machine
//	echo databases HOST:PORT                        tries what a stranger may at an OVSDB server
//	echo cast GROUP:PORT WAIT                       sends the host name to a multicast group for that long
//	echo listen GROUP:PORT WAIT                     listens for that long, and prints the names that it received
//
// SCTP is that of package sctp, since the kernel may not have it. If the kernel has SCTP, echo uses none and reports an
// error. SCTP takes addresses only, no host names. A server answers a datagram from the address that it was sent to. An
// answer is one line: the server's host name, a space, and the client's address and port as the server sees them. ask
// prints a line for each question: the answer, or "error: " and the error. Each question uses a connection, an
// association or a UDP socket of its own. ask exits with 1 if there was no answer at all. mirror does the same, but
// prints the size of each answer. questions prints such a line for each line of its input, in the same order. crowd
// does the same, but has all connections open before it asks the first question. flood sends up to 1,000 datagrams a
// second, and does not wait for answers.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/sctp"
)

func main() {
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	usage := errors.New("want `serve [PORT]`, `ask tcp|udp|sctp HOST:PORT [COUNT [WAIT]]`, `questions [WAIT]`, " +
		"`crowd [WAIT]`, `mirror HOST:PORT COUNT SIZE`, `flood HOST:PORT COUNT SIZE`, " +
		"`stray ADDRESS`, `freeze HOST:PORT`, `thaw CONNECTION`, `databases HOST:PORT`, " +
		"`cast GROUP:PORT WAIT` or `listen GROUP:PORT WAIT`")
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve("8080")
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) >= 3 && len(args) <= 5 && args[0] == "ask" && slices.Contains(networks(), args[1]):
		count := 1
		wait, err := waitOf(args[min(4, len(args)):])
		if err != nil {
			return err
		}
		if len(args) > 3 {
			if count, err = strconv.Atoi(args[3]); err != nil || count < 1 {
				return fmt.Errorf("count %q: want a positive number", args[3])
			}
		}
		return asked(args[2], count, wait, func(ctx context.Context) (string, error) {
			return question(ctx, dialer().DialContext, args[1], args[2])
		})
	case (len(args) == 1 || len(args) == 2) && (args[0] == "questions" || args[0] == "crowd"):
		wait, err := waitOf(args[1:])
		if err != nil {
			return err
		}
		if args[0] == "crowd" {
			return askCrowd(os.Stdin, os.Stdout, wait)
		}
		return askAll(os.Stdin, os.Stdout, wait)
	case len(args) == 4 && (args[0] == "flood" || args[0] == "mirror"):
		return datagrams(args)
	case len(args) == 2 && args[0] == "stray":
		return stray(args[1])
	case len(args) == 2 && args[0] == "freeze":
		return freeze(args[1], os.Stdout)
	case len(args) == 2 && args[0] == "thaw":
		return thaw(args[1], os.Stdout)
	case len(args) == 2 && args[0] == "databases":
		return databases(args[1])
	case len(args) == 3 && (args[0] == "cast" || args[0] == "listen"):
		return multicast(args[0], args[1], args[2])
	default:
		return usage
	}
}

// datagrams runs flood or mirror.
func datagrams(args []string) error {
	count, err := strconv.Atoi(args[2])
	if err != nil || count < 1 {
		return fmt.Errorf("count %q: want a positive number", args[2])
	}
	size, err := strconv.Atoi(args[3])
	if err != nil || size < 1 || size > maxDatagram {
		return fmt.Errorf("size %q: want 1 to %d", args[3], maxDatagram)
	}
	if args[0] == "flood" {
		return flood(args[1], count, size)
	}
	return asked(args[1], count, time.Second, func(ctx context.Context) (string, error) {
		answer, err := exchange(ctx, dialer().DialContext, args[1], bytes.Repeat([]byte{mirrored}, size))
		return fmt.Sprint(len(answer), " bytes"), err
	})
}

// waitOf is the time to wait for an answer, by the last argument of a command if it is there.
func waitOf(last []string) (time.Duration, error) {
	if len(last) == 0 {
		return time.Second, nil
	}
	wait, err := time.ParseDuration(last[0])
	if err != nil {
		return 0, fmt.Errorf("reading the time to wait: %w", err)
	}
	return wait, nil
}

// networks are the protocols of questions.
func networks() []string { return []string{"tcp", "udp", "sctp"} }

// serve answers until a server fails.
func serve(port string) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("asking for the host name: %w", err)
	}
	at, err := net.ResolveUDPAddr("udp", ":"+port)
	if err != nil {
		return fmt.Errorf("port %q: %w", port, err)
	}
	packets, err := net.ListenUDP("udp", at)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	failed := make(chan error, 3)
	associations, err := sctp.Listen(uint16(at.Port))
	switch {
	case errors.Is(err, sctp.ErrKernel):
		fmt.Fprintln(os.Stderr, "echo: not over SCTP:", err) // clients of SCTP get an error, too
	case err != nil:
		return fmt.Errorf("listening for SCTP: %w", err)
	default:
		go func() {
			failed <- associations.Serve(func(from netip.AddrPort, _ []byte) []byte {
				return []byte(name + " " + from.String() + "\n")
			})
		}()
	}
	go func() { failed <- servePackets(packets, name) }()
	// A connection that moves is silent meanwhile: nobody probes whether it is alive.
	connections, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	go func() {
		failed <- (&http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "%s %s\n", name, r.RemoteAddr)
			}),
		}).Serve(connections)
	}()
	return <-failed
}

// mirrored is the first byte of a datagram that the server sends back unchanged.
const mirrored = '='

// maxDatagram is the largest UDP payload over IPv4.
const maxDatagram = 65507

// asked asks the given number of times and prints each answer.
func asked(address string, count int, wait time.Duration, question func(context.Context) (string, error)) error {
	answered := 0
	for range count {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		line, err := question(ctx)
		cancel()
		if err != nil {
			line = "error: " + err.Error()
		} else {
			answered++
		}
		fmt.Println(line)
	}
	if answered == 0 {
		return fmt.Errorf("%s: no answer to %d questions", address, count)
	}
	return nil
}

// dial opens a connection, as net.Dialer.DialContext does.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

func dialer() *net.Dialer { return &net.Dialer{} }

func question(ctx context.Context, open dial, network, address string) (string, error) {
	const text = "?\n"
	var answer []byte
	var err error
	switch network {
	case "tcp":
		return fetch(ctx, open, address)
	case "sctp":
		var to netip.AddrPort
		if to, err = netip.ParseAddrPort(address); err != nil {
			return "", err
		}
		answer, err = sctp.Ask(ctx, to, []byte(text))
	default:
		answer, err = exchange(ctx, open, address, []byte(text))
	}
	return strings.TrimSpace(string(answer)), err
}

// exchange sends a UDP datagram and returns the answer.
func exchange(ctx context.Context, open dial, address string, datagram []byte) ([]byte, error) {
	conn, err := open(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	if _, err := conn.Write(datagram); err != nil {
		return nil, err
	}
	buf := make([]byte, maxDatagram)
	n, err := conn.Read(buf)
	return buf[:n], err
}

// floodInterval is the time between two datagrams of a flood.
const floodInterval = time.Millisecond

// flood uses an unconnected socket, so that an ICMP error for one datagram does not stop the next.
func flood(address string, count, size int) error {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = conn.Close() }() // everything is sent, or the error is reported
	payload := make([]byte, size)
	tick := time.NewTicker(floodInterval)
	defer tick.Stop()
	for i := range count {
		<-tick.C
		if _, err := conn.WriteToUDP(payload, to); err != nil {
			return fmt.Errorf("sending datagram %d of %d: %w", i+1, count, err)
		}
	}
	return nil
}

func fetch(ctx context.Context, open dial, address string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: open}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(b)), err
}
