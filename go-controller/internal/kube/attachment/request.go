package attachment

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// mostBytes is how long the annotation may be.
const mostBytes = 16 << 10

// common is the namespace whose definitions the pods of all namespaces may use. Those of other namespaces are for the
// pods of their own namespace alone: who writes a definition decides who is in its network.
const common = cluster.SharedNamespace

// Requests reads the annotation k8s.v1.cni.cncf.io/networks of a pod in a namespace (section 4.1): either
// "[NAMESPACE/]NAME[@INTERFACE], ..." or a JSON list. The error says what is wrong with the value.
func Requests(namespace, value string) ([]cluster.Attachment, error) {
	if len(value) > mostBytes {
		return nil, fmt.Errorf("the value has %d bytes, want at most %d", len(value), mostBytes)
	}
	read := short
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		read = list
	}
	requests, err := read(value)
	if err != nil {
		return nil, err
	}
	if len(requests) > annotation.MaxInterfaces {
		return nil, fmt.Errorf("%d networks, want at most %d", len(requests), annotation.MaxInterfaces)
	}
	var out []cluster.Attachment
	taken := map[string]bool{}
	for i, r := range requests {
		a, err := r.attachment(namespace, i)
		if err != nil {
			return nil, fmt.Errorf("network %d, %.64q: %w", i+1, r.Name, err)
		}
		if taken[a.Interface] {
			return nil, fmt.Errorf("network %d, %.64q: interface %q is another network's, want another name", i+1, r.Name,
				a.Interface)
		}
		taken[a.Interface] = true
		out = append(out, a)
	}
	return out, nil
}

// request is an element of the JSON list (section 4.1.2.1).
type request struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips"`
	MAC       string   `json:"mac"`
	Claim     string   `json:"ipam-claim-reference"`

	others []string // fields that this plugin does not serve
}

// short reads the form without JSON.
func short(value string) (out []request, err error) {
	for _, item := range strings.Split(value, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		var r request
		r.Name, r.Interface, _ = strings.Cut(item, "@")
		if namespace, name, ok := strings.Cut(r.Name, "/"); ok {
			r.Namespace, r.Name = namespace, name
		}
		out = append(out, r)
	}
	return out, nil
}

// list reads the JSON form. Fields that are not known may be another plugin's.
func list(value string) ([]request, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(value), &raw); err != nil {
		return nil, fmt.Errorf(`not a list of networks, want such as [{"name":"blue"}]: %w`, err)
	}
	out := make([]request, len(raw))
	for i, text := range raw {
		var fields map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(text, &out[i]), json.Unmarshal(text, &fields)); err != nil {
			return nil, fmt.Errorf(`network %d: want such as {"name":"blue","ips":["10.99.0.7"]}: %w`, i+1, err)
		}
		for _, known := range []string{"name", "namespace", "interface", "ips", "mac", "ipam-claim-reference"} {
			delete(fields, known)
		}
		out[i].others = slices.Sorted(maps.Keys(fields))
	}
	return out, nil
}

func (r request) attachment(namespace string, i int) (a cluster.Attachment, err error) {
	in := r.Namespace
	if in == "" {
		in = namespace
	}
	if len(validation.IsDNS1123Subdomain(r.Name)) > 0 || len(validation.IsDNS1123Label(in)) > 0 {
		return a, errors.New("want the name of a NetworkAttachmentDefinition, perhaps after its namespace and a slash")
	}
	a = cluster.Attachment{Network: names.Defined(in, r.Name), Interface: r.Interface}
	if a.Interface == "" {
		a.Interface = fmt.Sprintf("net%d", i+1)
	}
	if !names.IsFurtherInterface(a.Interface) {
		return a, fmt.Errorf("interface %.64q: want 1 to 15 printable ASCII characters without white space, /, : and %%, "+
			"other than eth0, lo, all and default", a.Interface)
	}
	if err := r.ours(namespace, in, &a.Asked); err != nil {
		a.Asked = cluster.Asked{Unserved: fmt.Sprintf("%.300s", err)}
	}
	return a, nil
}

// ours reads what a pod asks for, as far as it is served in a network of this cluster. An error does not count where
// the definition is another plugin's.
func (r request) ours(namespace, in string, into *cluster.Asked) error {
	if in != namespace && in != common {
		return fmt.Errorf("it is in namespace %.64q, want one in the pod's own namespace, or in namespace %q", in, common)
	}
	if len(r.others) > 0 {
		return fmt.Errorf("field %.64q is not served in this network, want a request without it", r.others[0])
	}
	return r.asks(into)
}

// asks reads the MAC and the addresses that a pod asks for, and the claim that it refers to.
func (r request) asks(into *cluster.Asked) (err error) {
	if r.Claim != "" {
		if len(validation.IsDNS1123Subdomain(r.Claim)) > 0 {
			return fmt.Errorf("ipam-claim-reference %.64q: want the name of an IPAMClaim in the pod's namespace", r.Claim)
		}
		into.Claim = r.Claim
	}
	if r.MAC != "" {
		if into.MAC, err = parseMAC(r.MAC); err != nil {
			return err
		}
	}
	return r.addresses(into)
}

// parseMAC reads the MAC that a pod asks for. Those that begin with 0a:58 are derived from addresses, or from the pod:
// no pod may take another's.
func parseMAC(value string) (m ipnet.MAC, err error) {
	if err := m.UnmarshalText([]byte(value)); err != nil {
		return m, fmt.Errorf("mac %.64q: want an Ethernet address such as 02:00:00:00:00:07", value)
	}
	switch {
	case !m.Unicast():
		return m, fmt.Errorf("mac %s: want a unicast address such as 02:00:00:00:00:07", m)
	case m.Derived():
		return m, fmt.Errorf("mac %s: addresses that begin with 0a:58 are for pods that ask for none", m)
	}
	return m, nil
}

// addresses reads the addresses that a pod asks for.
func (r request) addresses(into *cluster.Asked) error {
	for _, text := range r.IPs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, bad := netip.ParseAddr(text)
			if bad != nil || a.Zone() != "" {
				return fmt.Errorf("ips: %.64q: want an address such as 10.99.0.7 or 10.99.0.7/24", text)
			}
			p = ipnet.Single(a)
		}
		if p.Addr().Is4In6() {
			return fmt.Errorf("ips: %.64q is an IPv4-mapped IPv6 address, want plain IPv4", text)
		}
		if a := p.Addr(); a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
			return fmt.Errorf("ips: %s: want an address that an interface can have", text)
		}
		to := &into.IPv6
		if p.Addr().Is4() {
			to = &into.IPv4
		}
		if to.IsValid() {
			return fmt.Errorf("ips: %s and %s are of one address family, want one of each at most", to, p)
		}
		*to = p
	}
	return nil
}
