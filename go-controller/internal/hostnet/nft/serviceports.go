package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/conntrack"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// elementsAtOnce is how many elements are changed in one transaction: a list of
// attributes has 64 KiB at most (struct nlattr, linux/netlink.h).
const elementsAtOnce = 500

// serviceReader remembers what was read until there is another generation of
// nftables' rules (NFT_MSG_GETGEN, linux/netfilter/nf_tables.h): there may be ten
// thousands of elements, and a look every few seconds. It remembers flows, too,
// that are to be forgotten.
type serviceReader struct {
	mu         sync.Mutex
	generation uint32
	items      []hostplan.Item
	stale      *conntrack.Stale
}

func newServiceReader() *serviceReader {
	return &serviceReader{stale: conntrack.NewStale()}
}

// forget has flows forgotten that could not be before.
func (r *serviceReader) forget() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale.Forget()
}

func (r *serviceReader) read() ([]hostplan.Item, error) {
	generation, err := ruleGeneration()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation != 0 && generation == r.generation {
		return r.items, nil
	}
	items, err := readServicePorts()
	if err != nil {
		return nil, err
	}
	r.generation, r.items = generation, items // what changed meanwhile has a later generation
	return items, nil
}

// apply makes what was read into want. When nobody else has changed nftables'
// rules since, there is no need to read them again: each transaction is the next
// generation.
func (r *serviceReader) apply(have, want hostplan.ServicePorts) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes, transactions, err := applyServicePorts(have, want)
	if err != nil {
		return err
	}
	if transactions > 0 && r.generation != 0 {
		if now, err := ruleGeneration(); err == nil && now == r.generation+uint32(transactions) {
			r.generation, r.items = now, []hostplan.Item{want}
		}
	}
	return r.stale.ForgetAfter(changes, want)
}

// ruleGeneration is the number of nftables' present rules, which every
// transaction changes; 0 when the kernel does not tell.
func ruleGeneration() (uint32, error) {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC})
	messages, err := request.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, fmt.Errorf("reading the generation of nftables rules: %w", err)
	}
	for _, m := range messages {
		if len(m) < nfgenmsgSize {
			continue
		}
		attrs, err := nl.ParseRouteAttr(m[nfgenmsgSize:])
		if err != nil {
			return 0, fmt.Errorf("reading the generation of nftables rules: %w", err)
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.NFTA_GEN_ID && len(a.Value) == 4 {
				return binary.BigEndian.Uint32(a.Value), nil
			}
		}
	}
	return 0, nil
}

// readServicePorts reads the service ports. When chains, rules or sets are not
// as this version writes them, the link is "", so that all is made anew.
func readServicePorts() ([]hostplan.Item, error) {
	c, chains, err := openTable()
	if err != nil {
		return nil, err
	}
	some := slices.ContainsFunc(serviceChains(), func(name string) bool { return chains[name] != nil })
	if !some {
		return nil, nil
	}
	p, ok, err := readServiceRules(c, chains)
	if err != nil {
		return nil, err
	}
	if !ok {
		return []hostplan.Item{hostplan.ServicePorts{}}, nil
	}
	var lines []string
	for _, s := range serviceSets() {
		elements, err := c.GetSetElements(s.set(ourTable()))
		if errors.Is(err, os.ErrNotExist) {
			return []hostplan.Item{hostplan.ServicePorts{}}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading nftables set %s: %w", s.name(), err)
		}
		for _, e := range elements {
			lines = append(lines, s.entry(e).String())
		}
	}
	slices.Sort(lines)
	p.Entries = strings.Join(lines, "\n")
	return []hostplan.Item{p}, nil
}

// readServiceRules reads all but the entries from the rules' comments; ok is false
// when there is anything but the rules for these.
func readServiceRules(c *nftables.Conn, chains map[string]*nftables.Chain) (p hostplan.ServicePorts, ok bool, err error) {
	have := map[string][]*nftables.Rule{}
	var n hostplan.ServiceNode
	for _, name := range serviceChains() {
		ch := chains[name]
		if ch == nil || !sameChain(ch, serviceChain(ourTable(), name)) {
			return p, false, nil
		}
		rules, err := c.GetRules(ourTable(), ch)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return p, false, fmt.Errorf("reading nftables rules: %w", err)
		}
		have[name] = rules
		for _, r := range rules {
			about, link, _ := strings.Cut(ruleComment(r), through)
			n.Link = link
			if prefix, err := netip.ParsePrefix(about); err == nil {
				n.Ranges = append(n.Ranges, prefix)
			}
			if pods, of, is := betweenPods(about); is {
				n.Pods, n.Own = append(n.Pods, pods), append(n.Own, of)
			}
		}
	}
	p = hostplan.NewServicePorts(n, nil)
	if n, err = serviceNode(p); err != nil { // sorted, each once
		return p, false, err
	}
	return p, exactRules(have, serviceRules(n)), nil
}

func ruleComment(r *nftables.Rule) string {
	comment, _ := userdata.GetString(r.UserData, userdata.TypeComment)
	return comment
}

// applyServicePorts changes the elements that differ. Where chains, rules or
// sets are to be others, or an element can't be changed, all is made anew. The
// result is what changed, and in how many transactions have became want; 0 when
// it did not begin with have.
func applyServicePorts(have, want hostplan.ServicePorts) (changes []hostplan.ServiceChange, transactions int, err error) {
	if have.Of() == want.Of() {
		if changes, err := changeEntries(have, want); err == nil {
			return changes, (len(changes) + elementsAtOnce - 1) / elementsAtOnce, nil
		}
	}
	if err := makeServiceRules(&want); err != nil {
		return nil, 0, err
	}
	changes, err = changeEntries(hostplan.ServicePorts{}, want)
	return changes, 0, err
}

func changeEntries(have, want hostplan.ServicePorts) ([]hostplan.ServiceChange, error) {
	changes, err := hostplan.ServiceChanges(want, have)
	if err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(changes, elementsAtOnce) {
		if err := changeElements(chunk); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// makeServiceRules makes chains, rules and empty sets anew in one transaction,
// or removes them when want is nil.
func makeServiceRules(want *hostplan.ServicePorts) error {
	c, chains, err := openTable()
	if err != nil {
		return err
	}
	table := c.AddTable(ourTable())
	removeChains(c, chains, serviceChains())
	for _, s := range serviceSets() {
		set := s.set(table)
		if _, err := c.GetSetByName(ourTable(), set.Name); err == nil {
			c.DelSet(set)
		}
	}
	if want == nil {
		if len(chains) == 0 {
			c.DelTable(table)
		}
	} else if err := addServiceRules(c, table, *want); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables: %w", err)
	}
	return nil
}

func addServiceRules(c *nftables.Conn, table *nftables.Table, want hostplan.ServicePorts) error {
	n, err := serviceNode(want)
	if err != nil {
		return err
	}
	for _, s := range serviceSets() {
		if err := c.AddSet(s.set(table), nil); err != nil {
			return fmt.Errorf("making nftables set %s: %w", s.name(), err)
		}
	}
	chains := map[string]*nftables.Chain{}
	for _, name := range serviceChains() {
		chains[name] = c.AddChain(serviceChain(table, name))
	}
	for _, r := range serviceRules(n) {
		c.AddRule(&nftables.Rule{Table: table, Chain: chains[r.chain], Exprs: r.exprs, UserData: userdata.AppendString(nil, userdata.TypeComment, r.about)})
	}
	return nil
}

// changeElements makes the changes in one transaction, with one message for
// what goes and one for what comes in each set.
func changeElements(changes []hostplan.ServiceChange) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("opening nftables: %w", err)
	}
	drops, adds := map[string][]nftables.SetElement{}, map[string][]nftables.SetElement{}
	for _, change := range changes {
		if err := errors.Join(gather(drops, change.Drop), gather(adds, change.Add)); err != nil {
			return err
		}
	}
	for _, write := range []struct {
		elements map[string][]nftables.SetElement
		do       func(*nftables.Set, []nftables.SetElement) error
	}{{drops, c.SetDeleteElements}, {adds, c.SetAddElements}} {
		for _, s := range serviceSets() {
			if list := write.elements[s.name()]; len(list) > 0 {
				if err := write.do(s.set(ourTable()), list); err != nil {
					return fmt.Errorf("writing nftables set %s: %w", s.name(), err)
				}
			}
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables elements: %w", err)
	}
	return nil
}

// gather adds an entry, unless it is the zero one, to those of its set.
func gather(to map[string][]nftables.SetElement, e hostplan.ServiceEntry) error {
	if e == (hostplan.ServiceEntry{}) {
		return nil
	}
	s := serviceSetOf(e)
	element, err := s.element(e)
	to[s.name()] = append(to[s.name()], element)
	return err
}

// element is an entry as a set element; entry is the inverse.
func (s serviceSet) element(e hostplan.ServiceEntry) (out nftables.SetElement, err error) {
	protocol, err := protocolNumber(e.Protocol)
	if err != nil {
		return out, err
	}
	if !s.ports {
		out.Key = e.At.Addr().AsSlice()
	}
	out.Key = append(out.Key, protocol, 0, 0, 0) // each part fills whole registers
	out.Key = append(binary.BigEndian.AppendUint16(out.Key, e.At.Port()), 0, 0)
	if e.Kind.HasBuckets() {
		out.Key = binary.NativeEndian.AppendUint32(out.Key, uint32(e.Bucket))
	}
	if e.Kind == hostplan.AllowEntry {
		out.KeyEnd = append(slices.Clone(out.Key), lastOf(e.From).AsSlice()...)
	}
	if e.Kind.HasFrom() {
		out.Key = append(out.Key, e.From.Masked().Addr().AsSlice()...)
	}
	if e.Kind.Leads() {
		out.Val = append(binary.BigEndian.AppendUint16(e.To.Addr().AsSlice(), e.To.Port()), 0, 0)
	}
	return out, nil
}

// lastOf is the last address of p.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// entry reads an element. Of one that isn't ours the result is some other
// entry than any that is wanted, by which it is removed.
func (s serviceSet) entry(e nftables.SetElement) hostplan.ServiceEntry {
	out := hostplan.ServiceEntry{Kind: s.kind}
	key, size := e.Key, int(s.family.size)
	at := netip.IPv4Unspecified()
	if size > 4 {
		at = netip.IPv6Unspecified()
	}
	if !s.ports && len(key) >= size {
		at, _ = netip.AddrFromSlice(key[:size])
		key = key[size:]
	}
	if len(key) >= 8 {
		out.Protocol = protocolName(key[0])
		out.At = netip.AddrPortFrom(at, binary.BigEndian.Uint16(key[4:]))
		key = key[8:]
	}
	if s.kind.HasBuckets() && len(key) >= 4 {
		out.Bucket = int(binary.NativeEndian.Uint32(key))
		key = key[4:]
	}
	if s.kind.HasFrom() && len(key) == size {
		from, _ := netip.AddrFromSlice(key)
		last := from
		if s.kind == hostplan.AllowEntry && len(e.KeyEnd) >= size {
			last, _ = netip.AddrFromSlice(e.KeyEnd[len(e.KeyEnd)-size:])
		}
		out.From = rangePrefix(from, last)
	}
	if s.kind.Leads() && len(e.Val) >= size+2 {
		to, _ := netip.AddrFromSlice(e.Val[:size])
		out.To = netip.AddrPortFrom(to, binary.BigEndian.Uint16(e.Val[size:]))
	}
	return out
}

// rangePrefix is the prefix from first to last; the single address when they
// are the ends of none.
func rangePrefix(first, last netip.Addr) netip.Prefix {
	for bits := range first.BitLen() {
		if p := netip.PrefixFrom(first, bits); p.Masked() == p && lastOf(p) == last {
			return p
		}
	}
	return netip.PrefixFrom(first, first.BitLen())
}
