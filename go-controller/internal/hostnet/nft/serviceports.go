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

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/conntrack"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// elementsAtOnce is how many elements are changed in one transaction: a list of
// attributes has 64 KiB at most (struct nlattr, linux/netlink.h).
const elementsAtOnce = 500

// serviceReader keeps what was read until nftables' rules have another generation
// (NFT_MSG_GETGEN, linux/netfilter/nf_tables.h). There may be ten thousands of
// elements, and a read every few seconds. It also keeps flows that are to be forgotten.
type serviceReader struct {
	mu         sync.Mutex
	generation uint32
	items      []hostplan.Item
	stale      *conntrack.Stale
}

// forget retries to forget flows of which that failed earlier.
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

// apply turns what was read into want. Each transaction is the next generation, so
// nothing is read again unless somebody else has changed nftables' rules meanwhile.
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

// ruleGeneration is the number of nftables' present rules. Every transaction changes
// it. It is 0 when the kernel does not tell.
func ruleGeneration() (uint32, error) {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC})
	messages, err := request.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, fmt.Errorf("reading the generation of nftables rules: %w", err)
	}
	for _, m := range messages {
		if id := attribute(m, unix.NFTA_GEN_ID); len(id) == 4 {
			return binary.BigEndian.Uint32(id), nil
		}
	}
	return 0, nil
}

// readServicePorts reads the service ports. When chains or rules are not as this
// version writes them, the link is "", and so they are made anew; the entries are
// those of the sets that can stay.
func readServicePorts() ([]hostplan.Item, error) {
	have, ok, err := readRules(serviceChains())
	if !ok || err != nil {
		return nil, err
	}
	p, known, err := serviceItem(have)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range serviceSets() {
		if !known && !s.stays(have.conn) { // known rules go with known sets
			continue
		}
		elements, err := have.conn.GetSetElements(s.set())
		if errors.Is(err, os.ErrNotExist) {
			p = hostplan.ServicePorts{}
			continue
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

// serviceItem reads all but the entries from what the rules are about; known is
// false, and the item the zero one, when there is anything but the rules for these.
func serviceItem(have ruleSet) (p hostplan.ServicePorts, known bool, err error) {
	var n hostplan.ServiceNode
	for _, text := range have.abouts() {
		about, link, _ := strings.Cut(text, ifname)
		n.Link = link
		if prefix, err := netip.ParsePrefix(about); err == nil {
			n.Ranges = append(n.Ranges, prefix)
		}
		if pods, of, is := betweenPods(about); is {
			n.Pods, n.Own = append(n.Pods, pods), append(n.Own, of)
		}
	}
	found := hostplan.NewServicePorts(n, nil)
	if n, err = serviceNode(found); err != nil { // sorted, each once
		return p, false, err
	}
	if !have.exactly(serviceRules(n)) {
		return p, false, nil
	}
	return found, true, nil
}

// applyServicePorts makes chains and rules anew if they are to be others, in one
// transaction and around the sets, and changes the elements that differ. When an
// element can't be changed, the sets are made anew, too. The result is what changed,
// and in how many transactions have became want; 0 when it did not begin with have.
func applyServicePorts(
	have, want hostplan.ServicePorts,
) (changes []hostplan.ServiceChange, transactions int, err error) {
	remade := have.WithoutEntries() != want.WithoutEntries()
	if remade {
		if err := makeServiceRules(&want, have.Entries != ""); err != nil {
			return nil, 0, err
		}
	}
	changes, err = changeEntries(have, want)
	switch {
	case err != nil:
		if err := makeServiceRules(&want, false); err != nil {
			return nil, 0, err
		}
		changes, err = changeEntries(hostplan.ServicePorts{}, want)
		return changes, 0, err
	case remade: // flows that other rules led may be anywhere
		changes, err = hostplan.ServiceChanges(want, hostplan.ServicePorts{})
		return changes, 0, err
	}
	return changes, (len(changes) + elementsAtOnce - 1) / elementsAtOnce, nil
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

// makeServiceRules makes chains and rules anew in one transaction, or removes them
// when want is nil. With keep, sets stay with their elements, so that services are
// served all the time; the others are made anew and empty.
func makeServiceRules(want *hostplan.ServicePorts, keep bool) error {
	c, chains, err := openTable(ourTable())
	if err != nil {
		return err
	}
	var rules []rule
	if want != nil {
		n, err := serviceNode(*want)
		if err != nil {
			return err
		}
		rules = serviceRules(n)
	}
	c.AddTable(ourTable())
	removeChains(c, chains, serviceChains())
	for _, s := range serviceSets() {
		if keep && s.stays(c) {
			continue
		}
		if _, err := c.GetSetByName(ourTable(), s.name()); !errors.Is(err, os.ErrNotExist) {
			c.DelSet(s.set())
		}
		if want == nil {
			continue
		}
		if err := c.AddSet(s.set(), nil); err != nil {
			return fmt.Errorf("making nftables set %s: %w", s.name(), err)
		}
	}
	return setChains(c, chains, serviceChains(), rules)
}
