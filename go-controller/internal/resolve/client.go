package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Client asks servers of DNS.
type Client struct {
	// Servers are asked in their order, HOST:PORT each. With none, those of ResolvConf are.
	Servers []string
	// ResolvConf is a file such as /etc/resolv.conf (resolv.conf(5)). It is read for each question.
	ResolvConf string
}

// askTimeout limits how long one server is waited for.
const askTimeout = 2 * time.Second

// mostServers is how many servers are asked, as resolv.conf(5) has it.
const mostServers = 3

// udpSize is the longest answer over UDP: what fits into a packet of any network.
const udpSize = 1232

// mostAliases is how many aliases (CNAME) an answer may lead through.
const mostAliases = 16

// answer is what a server says about a name in one family.
type answer struct {
	addrs []netip.Addr
	ttl   time.Duration
	none  string // why there are no addresses, for users; "" when there are
}

// ask asks for the addresses of a name in one family, server after server until one knows.
func (c Client) ask(ctx context.Context, name string, is4 bool) (answer, error) {
	servers, err := c.servers()
	if err != nil {
		return answer{}, err
	}
	var failure error
	for _, server := range servers {
		a, err := askServer(ctx, server, name, is4)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
		failure = err
	}
	return answer{}, failure
}

func (c Client) servers() ([]string, error) {
	if len(c.Servers) > 0 {
		return c.Servers, nil
	}
	conf, err := dns.ClientConfigFromFile(c.ResolvConf)
	if err != nil {
		return nil, fmt.Errorf("the servers of DNS are not known: %w", err)
	}
	var out []string
	for _, s := range conf.Servers[:min(len(conf.Servers), mostServers)] {
		out = append(out, net.JoinHostPort(s, conf.Port))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s names no server of DNS", c.ResolvConf)
	}
	return out, nil
}

// askServer asks one server: over UDP, and over TCP for what is too long. The socket takes packets of that server
// alone. Who forges an answer must guess its port and the number of the question.
func askServer(ctx context.Context, server, name string, is4 bool) (answer, error) {
	kind := dns.TypeAAAA
	if is4 {
		kind = dns.TypeA
	}
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind).SetEdns0(udpSize, false)
	var reply *dns.Msg
	for _, network := range []string{"udp", "tcp"} {
		var err error
		client := &dns.Client{Net: network, Timeout: askTimeout, UDPSize: udpSize}
		if reply, _, err = client.ExchangeContext(ctx, question, server); err != nil {
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				return answer{}, errors.New("no server of DNS answers in time")
			}
			return answer{}, errors.New("no server of DNS gives an answer")
		}
		if !reply.Truncated {
			break
		}
	}
	if err := valid(question, reply); err != nil {
		return answer{}, err
	}
	return addresses(reply, question.Question[0].Name, kind)
}

// valid checks that a reply is about the question, and that the server knows.
func valid(question, reply *dns.Msg) error {
	if !reply.Response || reply.Truncated || len(reply.Question) != 1 ||
		reply.Question[0].Qtype != question.Question[0].Qtype ||
		!strings.EqualFold(reply.Question[0].Name, question.Question[0].Name) {
		return errors.New("the answer of DNS is about something else, or cut off")
	}
	switch reply.Rcode {
	case dns.RcodeSuccess, dns.RcodeNameError:
		return nil
	}
	return fmt.Errorf("DNS answers %s", dns.RcodeToString[reply.Rcode])
}

// addresses reads the addresses of a name, which may be an alias. Records that do not follow from the name do not
// count.
func addresses(reply *dns.Msg, name string, kind uint16) (answer, error) {
	out := answer{ttl: -1}
	for hops := 0; ; hops++ {
		next := ""
		for _, r := range reply.Answer {
			h := r.Header()
			if h.Class != dns.ClassINET || !strings.EqualFold(h.Name, name) {
				continue
			}
			a, ok := addressIn(r, kind)
			alias, isAlias := r.(*dns.CNAME)
			switch {
			case ok:
				out.addrs = append(out.addrs, a)
			case isAlias:
				next = alias.Target
			default:
				continue
			}
			if ttl := time.Duration(h.Ttl) * time.Second; out.ttl < 0 || ttl < out.ttl {
				out.ttl = ttl
			}
		}
		switch {
		case len(out.addrs) > 0:
			return out, nil
		case next == "" && reply.Rcode == dns.RcodeNameError:
			return answer{none: "DNS knows no such name", ttl: negativeTTL}, nil
		case next == "":
			return answer{none: "DNS has no addresses for it", ttl: negativeTTL}, nil
		case hops == mostAliases:
			return answer{}, fmt.Errorf("the answer of DNS leads through more than %d aliases", mostAliases)
		}
		name = next
	}
}

// addressIn is the address of a record of a kind.
func addressIn(r dns.RR, kind uint16) (netip.Addr, bool) {
	switch r := r.(type) {
	case *dns.A:
		a, ok := netip.AddrFromSlice(r.A.To4())
		return a, ok && kind == dns.TypeA
	case *dns.AAAA:
		a, ok := netip.AddrFromSlice(r.AAAA.To16())
		return a, ok && kind == dns.TypeAAAA
	}
	return netip.Addr{}, false
}
