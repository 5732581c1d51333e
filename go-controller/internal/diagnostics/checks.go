package diagnostics

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// isBridgeName tells whether ovs-ofctl takes a word for a bridge's name. Others are addresses of switches, or files.
func isBridgeName(word string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`).MatchString(word)
}

// checkNothing demands that there are no words.
func checkNothing(_ string, words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("%q: want nothing more", words[0])
	}
	return nil
}

// checkBridge demands that the first word is the name of a bridge.
func checkBridge(_ string, words []string) error {
	if len(words) == 0 || !isBridgeName(words[0]) {
		return fmt.Errorf("bridge %q: want a name, such as br-int", first(words))
	}
	return nil
}

// SecretKeys are the keys of Open vSwitch's database whose values are secrets: those of IPsec tunnels (options of an
// Interface, ovs-vswitchd.conf.db(5)), and the API token of nodes that are set up by hand.
func SecretKeys() []string { return []string{"psk", names.OVSAPIToken} }

// checkSecrets keeps ovs-vsctl from telling a secret alone, or from answering whether a guess is right: then there is
// no key before it, by which the output's redaction would know it.
func checkSecrets(_ string, words []string) error {
	for _, word := range words {
		for _, key := range SecretKeys() {
			if strings.Contains(word, key) {
				return fmt.Errorf("%q: want no word with %s: it is a secret", word, key)
			}
		}
	}
	return nil
}

// checkTrace lets ofproto/trace have a bridge and a flow. With a packet, a trace changes the switch. Source:
// ovs-vswitchd(8), "ofproto/trace".
func checkTrace(command string, words []string) error {
	if command != "ofproto/trace" {
		return nil
	}
	packet := func(word string) bool { _, err := hex.DecodeString(word); return err == nil }
	if len(words) != 2 || !isBridgeName(words[0]) || packet(words[1]) {
		return fmt.Errorf("%s %s: want a bridge and a flow, such as br-int in_port=1,ip", command, strings.Join(words, " "))
	}
	return nil
}

// checkIP lets ip have no name of an interface. The kernel loads modules for names that it does not know. Source:
// packet(7), netdevice(7): CAP_NET_ADMIN.
func checkIP(command string, words []string) error {
	if command == "route get" {
		if _, err := netip.ParseAddr(first(words)); err != nil || len(words) != 1 {
			return fmt.Errorf("%s %s: want one address", command, strings.Join(words, " "))
		}
		return nil
	}
	isTable := func(word string) bool {
		_, err := strconv.ParseUint(word, 10, 32)
		return err == nil || slices.Contains([]string{"all", "main", "local", "default"}, word)
	}
	if len(words) != 0 && (command != "route show" || len(words) != 2 || words[0] != "table" || !isTable(words[1])) {
		return fmt.Errorf("%s %s: want nothing behind it, or for route show: table all, main, local or a number", command,
			strings.Join(words, " "))
	}
	return nil
}

// checkExpression demands that hosts and networks in tcpdump's expression are addresses: others are asked for in DNS.
func checkExpression(_ string, words []string) error {
	if len(words) == 0 {
		return errors.New("the pod is missing: want NAMESPACE/POD")
	}
	expression := strings.NewReplacer("(", " ", ")", " ", "!", " ", "&&", " and ", "||", " or ").
		Replace(strings.Join(words[1:], " "))
	named := false // the word before says that this one is an address, or another such word
	for w := range strings.FieldsSeq(expression) {
		if slices.Contains([]string{"host", "net", "src", "dst", "gateway", "mask"}, w) {
			named = true
			continue
		}
		keyword := regexp.MustCompile(`^(and|or|not|port|portrange|[0-9]+(-[0-9]+)?|=+|[<>]=?)$`).MatchString(w)
		if (named && !keyword || strings.Contains(w, ".")) && !isAddress(w) {
			return fmt.Errorf("%q: want an address, not a name", w)
		}
		named = false
	}
	return nil
}

// isAddress tells whether a word is an IP or MAC address, or a network.
func isAddress(word string) bool {
	_, addressErr := netip.ParseAddr(word)
	_, prefixErr := netip.ParsePrefix(word)
	_, macErr := net.ParseMAC(word)
	return addressErr == nil || prefixErr == nil || macErr == nil ||
		regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,2}$`).MatchString(word)
}
