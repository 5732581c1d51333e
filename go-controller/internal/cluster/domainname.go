package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// DomainName is what is known of a name that rules of egress have: its addresses, as servers of DNS gave them. It comes
// from no API. Package resolve asks for it while the master runs.
type DomainName struct {
	Name  string       // in the form of ParseDomainName
	Addrs []netip.Addr // sorted, each once
	// Trouble is why the addresses are missing or may be old; "" when they are as they should be.
	Trouble string
	// Pending is true while DNS has not been heard about the name. The addresses are those that were known before.
	Pending bool
}

// Ref implements Object.
func (d *DomainName) Ref() Ref { return DomainNameRef(d.Name) }

// DomainNameRef names the DomainName of a name.
func DomainNameRef(name string) Ref { return Ref{KindDomainName, Name{Name: name}} }

// Equal implements Object.
func (d *DomainName) Equal(o Object) bool {
	e, ok := o.(*DomainName)
	return ok && d.Name == e.Name && d.Trouble == e.Trouble && d.Pending == e.Pending && slices.Equal(d.Addrs, e.Addrs)
}

// NewDomainName is what is known of a name. The order of the addresses makes no difference.
func NewDomainName(name string, addrs []netip.Addr, trouble string) *DomainName {
	out := slices.Clone(addrs)
	slices.SortFunc(out, netip.Addr.Compare)
	return &DomainName{Name: name, Addrs: slices.Compact(out), Trouble: trouble}
}

// The longest name and the longest label of DNS, as text (RFC 1035, 2.3.4).
const (
	maxDomainName  = 253
	maxDomainLabel = 63
)

// ParseDomainName is the one form of a name that stands for a host in DNS: in lower case, without a dot at the end. The
// name has two labels or more. A wildcard is none, and neither is an address.
func ParseDomainName(text string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	labels := strings.Split(name, ".")
	wrong := fmt.Errorf("%.64q: want a name such as www.example.org", text)
	if len(name) > maxDomainName || len(labels) < 2 {
		return "", wrong
	}
	for _, l := range labels {
		if !validLabel(l) {
			return "", wrong
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return "", fmt.Errorf("%.64q: is no name, want addresses in networks", text)
	}
	return name, nil
}

// validLabel is true for what the API takes as a part of a name.
func validLabel(l string) bool {
	if l == "" || len(l) > maxDomainLabel || strings.Trim(l[:1]+l[len(l)-1:], "-_") != l[:1]+l[len(l)-1:] {
		return false
	}
	return strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// DomainNames lists the names that the policy's rules have, each once for each rule's peer. p may be nil.
func (p *TieredPolicy) DomainNames() []string {
	if p == nil {
		return nil
	}
	var out []string
	for _, r := range p.Egress {
		for _, peer := range r.Peers {
			if peer.Domain != "" {
				out = append(out, peer.Domain)
			}
		}
	}
	return out
}
