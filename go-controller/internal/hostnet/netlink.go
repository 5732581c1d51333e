package hostnet

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nic"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// Netlink is the kernel of the network namespace in which NewNetlink was
// called. Sysctls are those of the calling thread's namespace. It implements
// item.Kernel.
type Netlink struct {
	nic.NICs
	items  item.Netlink
	tables *nft.Tables
}

// NewNetlink opens the kernel's routing socket (rtnetlink(7)).
func NewNetlink() (*Netlink, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening a netlink socket: %w", err)
	}
	items := item.Netlink{Handle: h}
	return &Netlink{NICs: nic.New(items), items: items, tables: nft.NewTables()}, nil
}

// Close closes the socket.
func (n *Netlink) Close() { n.items.Handle.Close() }

// ForgetFlows has the kernel forget UDP flows to services that have changed, if
// that failed when the change was applied.
func (n *Netlink) ForgetFlows() error { return n.tables.ForgetFlows() }

// Read implements item.Kernel.
func (n *Netlink) Read(want []hostplan.Item) ([]hostplan.Item, error) {
	items, err := n.items.Read(want)
	if err != nil {
		return nil, err
	}
	tables, err := n.tables.Read(want)
	return append(items, tables...), err
}

// Apply implements item.Kernel.
func (n *Netlink) Apply(c item.Change) error {
	if c.Kind() == "nftables" {
		return n.tables.Apply(c)
	}
	return n.items.Apply(c)
}
