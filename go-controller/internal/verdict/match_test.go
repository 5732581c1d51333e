package verdict

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// in is a switch with the ports a and b.
func in() names {
	return names{
		sets: map[string][]constant{
			"web_v4":   constants([]string{"10.128.0.3", "10.128.2.0/24", "no address"}),
			"web_v6":   constants([]string{"fd01::3", "fd01:0:0:2::/64"}),
			"none":     nil,
			"a.4.mixd": constants([]string{"10.128.0.3", "fd01::3"}),
		},
		groups: map[string][]string{"web": {"a", "b"}, "a_only": {"a"}},
	}
}

func tcp4() Packet {
	return Packet{Inport: "a", Outport: "b", Src: netip.MustParseAddr("10.128.0.3"),
		Dst: netip.MustParseAddr("10.128.2.9"), Protocol: TCP, SrcPort: 40000, DstPort: 8080}
}

func udp6() Packet {
	return Packet{Inport: "a", Outport: "b", Src: netip.MustParseAddr("fd01::3"),
		Dst: netip.MustParseAddr("fd01:0:0:2::9"), Protocol: UDP, SrcPort: 5353, DstPort: 53}
}

func icmp(p Packet) Packet {
	p.Protocol = map[bool]Protocol{true: ICMP, false: ICMPv6}[p.ip4()]
	p.SrcPort, p.DstPort, p.ICMPType = 0, 0, map[bool]uint8{true: 8, false: 128}[p.ip4()]
	return p
}

// A later fragment has a protocol, and no ports.
func TestFragments(t *testing.T) {
	for text, want := range map[string]bool{"tcp && ip.is_frag": true, "udp && ip.is_frag": false, "tcp": true,
		"tcp.dst == 8080": false, "tcp.dst != 9": false, "tcp.src < 65535": false, "ip4": true} {
		m, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p := tcp4()
		p.Fragment = true
		if got := m.matches(&p, in()); got != want {
			t.Errorf("%s holds for a fragment: %v, want %v", text, got, want)
		}
	}
}

// Matches mean what ovn-sb(5) says.
func TestMatches(t *testing.T) {
	for _, test := range []struct {
		match    string
		tcp, udp bool // whether it holds for tcp4 and for udp6
	}{
		{`1`, true, true},
		{`0`, false, false},
		{`!0`, true, true},
		{`!(0 || 1)`, false, false},
		{`ip`, true, true},
		{`ip && ct.est`, false, false},
		{`ip && ct.new`, true, true},
		{`ip && !ct.new`, false, false},
		{`ct_mark.blocked == 1`, false, false},
		{`ct_mark.blocked == 0`, true, true},
		{`ip.is_frag`, false, false},
		{`ip4`, true, false},
		{`ip6`, false, true},
		{`tcp`, true, false},
		{`udp || sctp`, false, true},
		{`icmp || icmp4 || icmp6`, false, false},
		{`eth.type == 0x800`, true, false},
		{`eth.type == 0x86dd`, false, true},
		{`ip.proto == {6, 132}`, true, false},
		{`inport == "a" && outport == "b"`, true, true},
		{`inport == "b" || outport == "a"`, false, false},
		{`inport == ""`, false, false},
		{`inport == "\u0061"`, true, true},
		{`inport == @web`, true, true},
		{`outport == @a_only`, false, false},
		{`outport == {@a_only, "b"}`, true, true},
		{`!(outport != @web)`, true, true},
		{`ip4.src == 10.128.0.3`, true, false},
		{`10.128.0.3 == ip4.src`, true, false},
		{`ip4.src == {10.128.0.3}`, true, false},
		{`ip4.src == {10.0.0.1 10.128.0.3, }`, true, false},
		{`ip4.src == 10.0.0.0/8`, true, false},
		{`ip4.src == 10.0.0.0/9`, false, false},
		{`ip4.src == 10.0.0.3/255.0.0.255`, true, false},
		{`ip4.src == 10.99.99.99/8`, true, false},
		{`ip4.src == 0x0a800003`, true, false},
		{`ip4.src != 0.0.0.0/0`, false, false},
		{`ip4.src == 0.0.0.0/0`, true, false},
		{`ip6.dst == fd01:0:0:2::/64`, false, true},
		{`ip6.dst == FD01:0:0:2::9`, false, true},
		{`ip6.src == ::/0`, false, true},
		{`ip6.src != fd01::/16`, false, false},
		{`ip4.src == $web_v4`, true, false},
		{`ip4.src == {$web_v4, 192.0.2.0/24}`, true, false},
		{`ip4.dst == {$none, $web_v4}`, true, false},
		{`ip6.src == $web_v6 && ip6.dst == $web_v6`, false, true},
		{`ip4.dst != $web_v4`, false, false},
		{`ip4.src == $none`, false, false},
		// An empty set takes the protocol away, too.
		{`ip4.src != $none`, true, true},
		{`!(ip4.src == $none)`, true, true},
		{`!(ip4.src != $none)`, false, false},
		{`tcp.dst == 8080`, true, false},
		{`tcp.dst == {80, 443, 8080}`, true, false},
		{`udp.dst == 53`, false, true},
		{`udp.dst == 0x35`, false, true},
		{`tcp.dst == 0x1f90/0xfff0`, true, false},
		{`tcp.dst == 0/0x1`, true, false},
		{`tcp.dst == 8080/8080`, true, false},
		{`sctp.dst == 8080`, false, false},
		{`tcp.dst != 80`, true, false},
		{`tcp.dst != {80, 443}`, true, false},
		{`tcp.dst != {80, 8080}`, false, false},
		{`tcp.src < 40001 && tcp.src <= 40000 && tcp.src > 39999 && tcp.src >= 40000`, true, false},
		{`tcp.src < 40000 || tcp.src > 40000`, false, false},
		{`8000 <= tcp.dst <= 8999`, true, false},
		{`8080 < tcp.dst <= 8999`, false, false},
		{`8999 >= tcp.dst > 8079`, true, false},
		{`80 < tcp.dst`, true, false},
		{`(tcp.dst == {80, 443} || 8000 <= tcp.dst <= 8999)`, true, false},
		{`outport == @web && ip4.src == {$web_v4, 10.0.0.0/9} && (tcp.dst == {80} || 1 <= tcp.dst <= 9000)`, true, false},
		// ! does not negate the protocol that a field implies.
		{`!(tcp.dst == 80)`, true, false},
		{`!(tcp.dst == 8080)`, false, false},
		{`!(8000 <= tcp.dst <= 8999)`, false, false},
		{`!(9000 <= tcp.dst <= 9999)`, true, false},
		{`!(tcp.dst == 80 || udp.dst == 53)`, false, false},
		{`!(tcp.dst == 80 && udp.dst == 53)`, true, false},
		{`!(!(tcp))`, true, false},
		{`!(!(tcp) && !(udp))`, true, true},
		{`ip && !(udp.src != 5353) && (udp.dst > 1024 || udp.dst == 53)`, false, true},
		{`icmp6.type == 137 || (ip4 && udp.src == 67 && udp.dst == 68) || ip4.src == 0.0.0.0`, false, false},
	} {
		m, err := parse(test.match)
		if err != nil {
			t.Error(err)
			continue
		}
		if why := m.void(in()); why != "" {
			t.Errorf("match %s is void: %s", test.match, why)
		}
		tcp, udp := tcp4(), udp6()
		if have := m.matches(&tcp, in()); have != test.tcp {
			t.Errorf("match %s: %v for TCP over IPv4", test.match, have)
		}
		if have := m.matches(&udp, in()); have != test.udp {
			t.Errorf("match %s: %v for UDP over IPv6", test.match, have)
		}
	}
}

func TestICMP(t *testing.T) {
	for match, want := range map[string][2]bool{ // for IPv4 and IPv6
		"icmp": {true, true}, "icmp4": {true, false}, "icmp6": {false, true}, "icmp4.type == 8": {true, false},
		"icmp6.type == {128, 129} && icmp6.code == 0": {false, true}, "ip.proto == 1": {true, false}, "tcp": {},
	} {
		m, err := parse(match)
		if err != nil {
			t.Fatal(err)
		}
		four, six := icmp(tcp4()), icmp(udp6())
		if have := [2]bool{m.matches(&four, in()), m.matches(&six, in())}; have != want {
			t.Errorf("match %s: %v, want %v", match, have, want)
		}
	}
}

// A match that names what is not there has no effect, although the rest of it holds.
func TestVoidMatches(t *testing.T) {
	for match, want := range map[string]string{
		`ip4 || ip4.src == $gone`:                   "no address set gone",
		`ip4.src == {$web_v4, $gone}`:               "no address set gone",
		`ip4 || inport == @gone`:                    "no port group gone",
		`inport == {"a", @gone}`:                    "no port group gone",
		`ip4.src == $web_v6`:                        "an address of 128 bits, and ip4.src has 32",
		`ip4 || !(ip4.src == {$a.4.mixd, 1.1.1.1})`: "an address of 128 bits",
	} {
		m, err := parse(match)
		if err != nil {
			t.Fatal(err)
		}
		if have := m.void(in()); !strings.Contains(have, want) {
			t.Errorf("match %s is void because %q, want %q", match, have, want)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for match, want := range map[string]string{
		``:                               `character 1: the end`,
		`ip4 &&`:                         `character 7: the end`,
		`ip4 & tcp`:                      `character 5: "&" begins no token`,
		`ip4 && tcp || udp`:              `character 12: && and || need parentheses`,
		`ip4 tcp`:                        `character 5: "tcp", want`,
		`(ip4`:                           `character 5: the end, want`,
		`ip4)`:                           `character 4: ")", want`,
		`!ip4`:                           `character 2: ip4 can only be tested without !`,
		`!tcp.dst == 80`:                 `character 1: ! needs parentheses`,
		`! 80 == tcp.dst`:                `character 1: ! needs parentheses`,
		`inport != "a"`:                  `character 1: inport can only be compared for equality`,
		`!(inport == "a")`:               `inport can only be compared for equality`,
		`ip.proto > 5`:                   `ip.proto can only be compared for equality`,
		`inport < "a"`:                   `character 8: < compares with a set`,
		`tcp.dst`:                        `character 8: the end, want ==`,
		`tcp.dst = 80`:                   `character 9: "=" begins no token`,
		`tcp.dst == `:                    `character 12: the end, want a number`,
		`tcp.dst == {}`:                  `character 13: "}", want a number`,
		`tcp.dst == {80`:                 `character 15: the end, want a number`,
		`tcp.dst == 65536`:               `character 12: a constant of 17 bits, and tcp.dst has 16`,
		`tcp.dst < {80, 443}`:            `character 9: < compares with a set`,
		`ip4.src < $web_v4`:              `character 9: < compares with a set`,
		`ip4.src > 10.0.0.0/8`:           `character 9: > compares with a mask`,
		`tcp.dst == 080`:                 `want a decimal number without leading zeros`,
		`ip4.src == fd01::1`:             `a constant of 128 bits, and ip4.src has 32`,
		`ip4.src == 00:11:22:33:44:55`:   `a constant of 48 bits`,
		`ip4.src == 10.0.0.0/33`:         `want a mask of the form of the value`,
		`ip4.src == 10.0.0/8`:            `character 12: "10.0.0": want`,
		`ip4.src == "10.0.0.1"`:          `character 12: ip4.src is compared with names of ports`,
		`inport == 1`:                    `inport is compared with numbers or addresses`,
		`inport == $web_v4`:              `inport is compared with numbers or addresses`,
		`inport == {"a", 1}`:             `character 17: numbers or addresses beside names`,
		`inport == "a`:                   `character 11: a string without its end`,
		`inport == "\x"`:                 `character 11: "\x" is no string`,
		`ip4.src == $`:                   `character 12: want a name after $`,
		`inport == @1`:                   `character 11: want a name after @`,
		`eth.src == 00:11:22:33:44:55`:   `character 1: "eth.src" is not known`,
		`ip4.source == 1.1.1.1`:          `"ip4.source" is not known`,
		`ip4 == 1`:                       `character 5: "==", want`,
		`80 < tcp.dst > 443`:             `character 14: want a range`,
		`80 == tcp.dst == 443`:           `character 15: want a range`,
		`2`:                              `character 2: the end, want ==`,
		`ct.rel`:                         `"ct.rel" is not known`,
		`ip4 // all`:                     `character 5: "/" begins no token`,
		strings.Repeat("(", 200) + "ip4": `character 101: more than 100 nested parentheses`,
	} {
		_, err := parse(match)
		if err == nil {
			t.Errorf("match %s: no error, want %s", match, want)
			continue
		}
		if where := new(syntaxError); !errors.As(err, &where) || !strings.Contains(err.Error(), want) {
			t.Errorf("match %s: error %v, want %s", match, err, want)
		}
	}
}

// No text makes the parser or the evaluation panic, and an error's place is in the text.
func FuzzMatch(f *testing.F) {
	f.Add(`outport == @web && ip4.src == {$web_v4, 10.0.0.0/9} && (tcp.dst == {80, 443} || 8000 <= tcp.dst <= 8999)`)
	f.Add(`!(inport != {"a", "\u0062"}) || ip6.src == {$web_v6 fd01::/64 ::1/::ffff} || 0x10/0xf0 == udp.dst`)
	f.Add(`icmp6.type == 137 || (ip4 && udp.src == 67 && udp.dst == 68) || ip4.src == 0.0.0.0`)
	f.Add(`ip4.src != $none && ip6.dst == {$gone, ::} && inport == @gone && 1 && !0 && eth.type == 0x86dd`)
	packets := []Packet{tcp4(), udp6(), icmp(tcp4()), icmp(udp6()), {}}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMatch(text)
		if err != nil {
			if where := new(syntaxError); !errors.As(err, &where) || where.at < 0 || where.at > len(text) {
				t.Errorf("match %q: error %v", text, err)
			}
			return
		}
		within, err := parseMatch("((" + text + ") && 1)")
		if err != nil && strings.Count(text, "(") < maxDepth-2 {
			t.Errorf("match %q: within parentheses: %v", text, err)
		}
		void := m.void(in()) != ""
		for _, p := range packets {
			if have := m.matches(&p, in()); err == nil && !void && have != within.matches(&p, in()) {
				t.Errorf("match %q: %v, within parentheses %v, for %v", text, have, !have, p)
			}
		}
	})
}
