// Command echo is the test network's other end.
//
//	echo serve [PORT]                               answers on TCP (HTTP), UDP and SCTP
//	echo ask tcp|udp|sctp HOST:PORT [COUNT [WAIT]]  asks that often, WAIT for each answer
//	echo questions [WAIT]                           asks all lines "tcp|udp|sctp HOST:PORT" of its input at the same time
//	echo mirror HOST:PORT COUNT SIZE                asks that often over UDP, with SIZE bytes for as many
//	echo flood HOST:PORT COUNT SIZE                 sends COUNT UDP datagrams of SIZE bytes
//	echo stray ADDRESS                              sends packets that belong to no connection
//
// SCTP is that of package sctp, as the kernel may have none; where it has, nothing
// is asked or answered over SCTP, and an error says so. It has no names for hosts,
// only addresses. A datagram is answered from the address at which it came. An answer is one
// line: the host name of who answers, a space, and the address and port that it
// saw the question come from. ask prints one line a question: the answer, or
// "error: " and what went wrong; each question is a connection, an association, or
// a UDP socket, of its own. It exits with 1 when none was answered. So it is with mirror, but
// of an answer the size is printed. questions prints such a line for each of its
// input, in their order. flood sends 1,000 datagrams a second, or as many as it
// can, and waits for no answer.
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
	usage := errors.New("want `serve [PORT]`, `ask tcp|udp|sctp HOST:PORT [COUNT [WAIT]]`, `questions [WAIT]`, `mirror HOST:PORT COUNT SIZE`, `flood HOST:PORT COUNT SIZE` or `stray ADDRESS`")
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve("8080")
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) >= 3 && len(args) <= 5 && args[0] == "ask" && slices.Contains(networks(), args[1]):
		count, wait := 1, time.Second
		var err error
		if len(args) > 3 {
			if count, err = strconv.Atoi(args[3]); err != nil || count < 1 {
				return fmt.Errorf("count %q: want a positive number", args[3])
			}
		}
		if len(args) > 4 {
			if wait, err = time.ParseDuration(args[4]); err != nil {
				return fmt.Errorf("wait %q: %w", args[4], err)
			}
		}
		return asked(args[2], count, wait, func(ctx context.Context) (string, error) { return question(ctx, args[1], args[2]) })
	case (len(args) == 1 || len(args) == 2) && args[0] == "questions":
		wait := time.Second
		if len(args) == 2 {
			var err error
			if wait, err = time.ParseDuration(args[1]); err != nil {
				return fmt.Errorf("wait %q: %w", args[1], err)
			}
		}
		return askAll(os.Stdin, wait)
	case len(args) == 4 && (args[0] == "flood" || args[0] == "mirror"):
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
			answer, err := exchange(ctx, args[1], bytes.Repeat([]byte{mirrored}, size))
			return fmt.Sprint(len(answer), " bytes"), err
		})
	case len(args) == 2 && args[0] == "stray":
		return stray(args[1])
	default:
		return usage
	}
}

// networks are those that questions are asked over.
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
		fmt.Fprintln(os.Stderr, "echo: not over SCTP:", err) // who asks over it is told, too
	case err != nil:
		return fmt.Errorf("listening for SCTP: %w", err)
	default:
		go func() {
			failed <- associations.Serve(func(from netip.AddrPort, _ []byte) []byte { return []byte(name + " " + from.String() + "\n") })
		}()
	}
	go func() { failed <- servePackets(packets, name) }()
	go func() {
		failed <- (&http.Server{
			Addr: ":" + port, ReadHeaderTimeout: 10 * time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s\n", name, r.RemoteAddr) }),
		}).ListenAndServe()
	}()
	return <-failed
}

// mirrored is the first byte of a datagram that is to come back as it is.
const mirrored = '='

// maxDatagram is the most that UDP over IPv4 carries.
const maxDatagram = 65507

// asked asks that often and prints each answer.
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

func question(ctx context.Context, network, address string) (string, error) {
	const text = "?\n"
	var answer []byte
	var err error
	switch network {
	case "tcp":
		return fetch(ctx, address)
	case "sctp":
		var to netip.AddrPort
		if to, err = netip.ParseAddrPort(address); err != nil {
			return "", err
		}
		answer, err = sctp.Ask(ctx, to, []byte(text))
	default:
		answer, err = exchange(ctx, address, []byte(text))
	}
	return strings.TrimSpace(string(answer)), err
}

// exchange sends a UDP datagram and returns the one that comes back.
func exchange(ctx context.Context, address string, datagram []byte) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
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

// flood sends from a socket that is not connected, so that a refusal of one
// datagram does not keep the next.
func flood(address string, count, size int) error {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}
	conn, err := net.ListenUDP("udp", nil)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = conn.Close() }() // all is sent, or the error is told
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

func fetch(ctx context.Context, address string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
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
