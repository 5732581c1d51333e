package resolve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// serve is a server of DNS, over UDP and TCP, on an address of this machine.
func serve(t *testing.T, handle dns.HandlerFunc) (address string) {
	t.Helper()
	packets, listener := listen(t)
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: handle}, {Listener: listener, Handler: handle}} {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		ended := make(chan error, 1)
		go func() { ended <- s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
			<-ended
		})
	}
	return packets.LocalAddr().String()
}

// listen takes one port of both protocols. Another program may have that of the other protocol: then it tries others.
func listen(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	const tries = 20
	var last error
	for range tries {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, listener
		}
		last = err
		_ = packets.Close()
	}
	t.Fatalf("no port is free for UDP and TCP: %v", last)
	return nil, nil
}

// zone answers with these records, whatever is asked for, but truncates answers over UDP that do not fit.
func zone(t *testing.T, rcode int, records ...string) dns.HandlerFunc {
	t.Helper()
	var answer []dns.RR
	for _, r := range records {
		rr, err := dns.NewRR(r)
		if err != nil {
			t.Fatal(err)
		}
		answer = append(answer, rr)
	}
	return func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetRcode(q, rcode)
		m.Answer = answer
		if w.LocalAddr().Network() == "udp" {
			m.Truncate(udpSize)
		}
		_ = w.WriteMsg(m)
	}
}

func asked(t *testing.T, c Client, name string, is4 bool) string {
	t.Helper()
	a, err := c.ask(t.Context(), name, is4)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprint(a.addrs, " ", a.ttl, " ", a.none)
}

// Records that follow from the name count, and no others. The shortest time to live counts.
func TestAnswers(t *testing.T) {
	chain := []string{"www.example.org. 300 IN CNAME WEB.example.net.", "web.example.net. 60 IN A 192.0.2.1",
		"web.example.net. 90 IN A 192.0.2.2", "other.example.net. 60 IN A 192.0.2.9",
		"web.example.net. 9 IN AAAA 2001:db8::1"}
	loop := []string{"www.example.org. 1 IN CNAME a.example.org.", "a.example.org. 1 IN CNAME www.example.org."}
	for what, c := range map[string]struct {
		is4     bool
		rcode   int
		records []string
		want    string
	}{
		"alias, IPv4":  {true, dns.RcodeSuccess, chain, "[192.0.2.1 192.0.2.2] 1m0s "},
		"alias, IPv6":  {false, dns.RcodeSuccess, chain, "[2001:db8::1] 9s "},
		"no such name": {true, dns.RcodeNameError, nil, "[] 30s DNS knows no such name"},
		"no addresses": {true, dns.RcodeSuccess, nil, "[] 30s DNS has no addresses for it"},
		"others' records": {true, dns.RcodeSuccess, []string{"www.example.net. 60 IN A 192.0.2.1"},
			"[] 30s DNS has no addresses for it"},
		"failure": {true, dns.RcodeServerFailure, chain, "error DNS answers SERVFAIL"},
		"loop":    {true, dns.RcodeSuccess, loop, "error the answer of DNS leads through more than 16 aliases"},
	} {
		client := Client{Servers: []string{serve(t, zone(t, c.rcode, c.records...))}}
		if got := asked(t, client, "www.example.org", c.is4); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// An answer that does not fit into a packet comes over TCP.
func TestLongAnswer(t *testing.T) {
	var records []string
	for i := range 200 {
		records = append(records, fmt.Sprintf("www.example.org. 60 IN A 192.0.2.%d", i))
	}
	client := Client{Servers: []string{serve(t, zone(t, dns.RcodeSuccess, records...))}}
	a, err := client.ask(t.Context(), "www.example.org", true)
	if err != nil || len(a.addrs) != 200 {
		t.Errorf("%d addresses, %v; want 200", len(a.addrs), err)
	}
}

// When a server does not know or answers about something else, the next one is asked.
func TestNextServer(t *testing.T) {
	good := serve(t, zone(t, dns.RcodeSuccess, "www.example.org. 60 IN A 192.0.2.1"))
	stray := serve(t, func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Question[0].Name = "www.example.net."
		_ = w.WriteMsg(m)
	})
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.LocalAddr().String()
	_ = closed.Close()
	for what, c := range map[string]struct{ bad, alone string }{
		"refused":        {serve(t, zone(t, dns.RcodeRefused)), "error DNS answers REFUSED"},
		"something else": {stray, "error the answer of DNS is about something else, or cut off"},
		"nobody":         {nobody, "error no server of DNS gives an answer"},
	} {
		if got := asked(t, Client{Servers: []string{c.bad}}, "www.example.org", true); got != c.alone {
			t.Errorf("%s: %s, want %s", what, got, c.alone)
		}
		got := asked(t, Client{Servers: []string{c.bad, good}}, "www.example.org", true)
		if got != "[192.0.2.1] 1m0s " {
			t.Errorf("%s, then a good server: %s", what, got)
		}
	}
}

// A server that is silent costs a question a few seconds, and no more.
func TestSilentServer(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	got := asked(t, Client{Servers: []string{silent.LocalAddr().String()}}, "www.example.org", true)
	if got != "error no server of DNS answers in time" || time.Since(start) > 5*askTimeout {
		t.Errorf("%s after %s", got, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Client{Servers: []string{silent.LocalAddr().String()}}).ask(ctx, "www.example.org", true); err == nil {
		t.Error("a question that was given up has an answer")
	}
}

// Without servers, those of a file are asked. It is read each time, and at most three servers count.
func TestResolvConf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	c := Client{ResolvConf: file}
	if _, err := c.servers(); err == nil || !strings.Contains(err.Error(), "the servers of DNS are not known: ") {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string][]string{
		"nameserver 192.0.2.1\nsearch a.example\nnameserver 2001:db8::1\n": {"192.0.2.1:53", "[2001:db8::1]:53"},
		"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n": {"1.1.1.1:53", "1.1.1.2:53",
			"1.1.1.3:53"},
		"search a.example\n": nil,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.servers(); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// Whatever a server sends, nothing fails but the question.
func FuzzAnswer(f *testing.F) {
	good := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	good.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeA, Class: dns.ClassINET},
		A: net.IPv4(192, 0, 2, 1)}}
	packed, err := good.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, packet []byte) {
		reply := new(dns.Msg)
		if reply.Unpack(packet) != nil {
			return
		}
		question := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		if valid(question, reply) != nil {
			return
		}
		a, err := addresses(reply, "www.example.org.", dns.TypeA)
		if err == nil && (a.none == "") == (len(a.addrs) == 0) {
			t.Errorf("%+v", a)
		}
		if slices.ContainsFunc(a.addrs, func(a netip.Addr) bool { return !a.Is4() }) {
			t.Errorf("%v", a.addrs)
		}
	})
}
