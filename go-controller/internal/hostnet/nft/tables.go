package nft

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/conntrack"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Tables is the item.Kernel of what is in nftables, in the calling thread's
// network namespace.
type Tables struct{ services *serviceReader }

// NewTables has read nothing yet.
func NewTables() *Tables { return &Tables{&serviceReader{stale: conntrack.NewStale()}} }

// ForgetFlows has the kernel forget UDP flows to services that have changed, if
// that failed when the change was applied.
func (t *Tables) ForgetFlows() error { return t.services.forget() }

// Read implements item.Kernel.
func (t *Tables) Read(want []hostplan.Item) (out []hostplan.Item, err error) {
	for _, w := range want {
		var items []hostplan.Item
		switch w := w.(type) {
		case hostplan.Masquerade:
			items, err = readMasquerade()
		case hostplan.Hairpin:
			items, err = readHairpin()
		case hostplan.AntiSpoof:
			items, err = readAntiSpoof()
		case hostplan.DatabaseDrop:
			items, err = readDatabaseDrop()
		case hostplan.ServicePorts:
			items, err = t.services.read()
		case hostplan.IngressDrop:
			items, err = ReadIngressDrop(w)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}

// Apply implements item.Kernel. What is to be removed may have gone already.
func (t *Tables) Apply(c item.Change) error {
	err := t.apply(c)
	if c.Want == nil && item.IsGone(err) {
		return nil
	}
	return err
}

func (t *Tables) apply(c item.Change) error {
	remove := c.Want == nil
	switch i := c.Item().(type) {
	case hostplan.Masquerade:
		return setItem(masqueradeChains(), masqueradeRules(i), remove)
	case hostplan.Hairpin:
		return setItem(hairpinChains(), hairpinRules(i), remove)
	case hostplan.AntiSpoof:
		return setItem(antiSpoofChains(), antiSpoofRules(i), remove)
	case hostplan.DatabaseDrop:
		return setItem(databaseDropChains(), databaseDropRules(i), remove)
	case hostplan.ServicePorts:
		if remove {
			return makeServiceRules(nil, false)
		}
		have, _ := c.Have.(hostplan.ServicePorts)
		return t.services.apply(have, i)
	case hostplan.IngressDrop:
		return SetIngressDrop(i, remove)
	default:
		return fmt.Errorf("%T is not known here", i)
	}
}
