package nicmove_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/nicmove"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// asEnv makes the test binary run as another program: "mover", "watchdog", "outside" (servers), "router" (router
// advertisements).
const asEnv = "NORTHBOUND_TEST_NICMOVE"

const stateDir = "/run/nics"

// call is the argument of a mover, in JSON.
type call struct {
	NICs, Bridges []string // to move; to return
	Options       nicmove.Options
	Target        string // HOST:PORT or an IP
	API           string // or the URL of an API server
	StopAt        int    // before this step, print "stopped" and wait for a signal
	Silence       time.Duration
}

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(asEnv) {
	case "":
		os.Exit(testkit.RunTests(m))
	case "mover":
		err = mover(os.Args[1])
	case "watchdog":
		err = watchdog(os.Args[1], os.Args[2], os.Args[3])
	case "outside":
		err = outside()
	case "router":
		err = router(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func open(ctx context.Context, out io.Writer, silence time.Duration) (*nicmove.Mover, error) {
	kernel, err := hostnet.NewNetlink()
	if err != nil {
		return nil, err
	}
	db, err := ovs.Open(ctx, "unix:/run/openvswitch/db.sock", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	guard := func(u nicmove.Undo) []string {
		return []string{"/usr/bin/env", asEnv + "=watchdog", self, u.NIC, u.Session, silence.String()}
	}
	return &nicmove.Mover{OVS: db, Kernel: kernel, Store: nicmove.Store{Dir: stateDir}, Out: out, Now: time.Now,
		Guard: guard}, nil
}

func mover(argument string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var c call
	if err := json.Unmarshal([]byte(argument), &c); err != nil {
		return err
	}
	m, err := open(ctx, os.Stdout, cmp.Or(c.Silence, 20*time.Second))
	if err != nil {
		return err
	}
	m.Step = func(n int) {
		if n == c.StopAt {
			fmt.Println("stopped")
			select {}
		}
	}
	if c.Target != "" {
		if c.Options.Target, err = nicmove.ParseTarget(c.Target); err != nil {
			return err
		}
	}
	if c.API != "" {
		c.Options.Target = nicmove.APIServer(c.API)
	}
	if len(c.NICs) > 0 {
		return m.Move(ctx, c.NICs, c.Options)
	}
	return m.Return(ctx, c.Bridges, c.Options.DryRun)
}

func watchdog(nic, session, silence string) error {
	ctx := context.Background()
	m, err := open(ctx, os.Stderr, 0)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(silence)
	if err != nil {
		return err
	}
	return nicmove.Watch(ctx, m, nicmove.WatchOptions{NIC: nic, Session: session, Silence: d}, os.Stdin, os.Stdout)
}

// outside serves on all addresses: TCP echo on port 7, HTTP on 80, HTTPS on 443. The latter two refuse all requests, as
// an API server refuses unknown clients.
func outside() error {
	echo, err := net.Listen("tcp", ":7")
	if err != nil {
		return err
	}
	for port, start := range map[string]func(*httptest.Server){":80": (*httptest.Server).Start,
		":443": (*httptest.Server).StartTLS} {
		l, err := net.Listen("tcp", port)
		if err != nil {
			return err
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}))
		s.Listener = l
		start(s)
	}
	fmt.Println("listening")
	for {
		conn, err := echo.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

// router sends router advertisements with a prefix for addresses on a link: at once, and whenever it is solicited
// (RFC 4861 section 4.2, RFC 4862).
func router(link string) error {
	conn, err := icmp.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	iface, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	p := conn.IPv6PacketConn()
	allNodes, allRouters := net.ParseIP("ff02::1"), net.ParseIP("ff02::2")
	for _, err := range []error{p.SetMulticastHopLimit(255), p.SetMulticastInterface(iface),
		p.JoinGroup(iface, &net.IPAddr{IP: allRouters})} {
		if err != nil {
			return err
		}
	}
	body := []byte{64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0} // hop limit, flags, lifetime 1800 s
	body = append(body, 1, 1)                                 // source link-layer address
	body = append(body, iface.HardwareAddr...)
	// prefix /64, valid 7200 s, preferred 3600 s
	body = append(body, 3, 4, 64, 0xc0, 0, 0, 0x1c, 0x20, 0, 0, 0x0e, 0x10, 0, 0, 0, 0)
	body = append(body, net.ParseIP("2001:db8:1::")...)
	message, err := (&icmp.Message{Type: ipv6.ICMPTypeRouterAdvertisement, Body: &icmp.RawBody{Data: body}}).Marshal(nil)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	buffer := make([]byte, 1500)
	for {
		if _, err := conn.WriteTo(message, &net.IPAddr{IP: allNodes, Zone: link}); err != nil {
			return err
		}
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return err
			}
			if n > 0 && buffer[0] == byte(ipv6.ICMPTypeRouterSolicitation) {
				break
			}
		}
	}
}
