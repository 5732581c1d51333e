package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostfacts"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/all"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
	"github.com/northbound-net/northbound/go-controller/internal/ipnet"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// facts is what was gathered of the node for more than one check. Each part has its
// error beside it.
type facts struct {
	c Config
	t Tools

	schema     ovs.Schema
	ids        map[string]string // external_ids of the Open_vSwitch row
	bridges    []ovs.Row
	interfaces []ovs.Row
	ovsErr     error

	sbRemote string // the one that answered
	sbKeys   *tls.Config
	chassis  []ovs.Row
	encaps   []ovs.Row
	global   map[string]string // options of the SB_Global row; most are NB_Global's
	sbErr    error

	answer  client.Answer
	apiErr  error
	node    local.Node
	nodeOK  bool
	nodeErr error

	served    local.Served
	servedErr error

	subnets []netip.Prefix
	source  string          // where the subnets are from
	host    hostplan.Facts  // what the plan depends on
	places  []hostnet.Place // of the tunnel addresses
	want    hostplan.Plan
	have    []hostplan.Item
	planErr error // why the kernel's part of the plan can't be compared
}

// gather reads everything that more than one check needs.
func gather(ctx context.Context, c Config, t Tools) *facts {
	h := &facts{c: c, t: t}
	h.ovsErr = h.timed(ctx, h.readOVS)
	h.name()
	h.sbErr = h.timed(ctx, h.readSouthbound)
	if c.Kubernetes {
		h.apiErr = h.timed(ctx, func(ctx context.Context) (err error) {
			h.answer, err = t.API.Probe(ctx)
			return err
		})
		if h.apiErr == nil {
			h.nodeErr = h.timed(ctx, func(ctx context.Context) (err error) {
				h.node, h.nodeOK, err = t.API.Node(ctx, h.c.Node.Name)
				return err
			})
		}
		if h.apiErr == nil && h.nodeErr == nil {
			h.servedErr = h.timed(ctx, h.readServices)
		}
	}
	h.planErr = h.plan()
	return h
}

// readServices reads the services and the ranges of ClusterIPs. These add to
// --k8s-service-cidrs.
func (h *facts) readServices(ctx context.Context) (err error) {
	if h.served, err = h.t.API.Served(ctx, h.c.Node.Name, serviceport.NeedsEndpoints); err != nil {
		return err
	}
	h.c.Node.ServiceCIDRs = ipnet.Union(h.c.Node.ServiceCIDRs, h.served.Ranges)
	return nil
}

func (h *facts) timed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	return do(ctx)
}

func (h *facts) readOVS(ctx context.Context) (err error) {
	remote := h.c.Node.OVSAddress
	if h.schema, err = h.t.Schema(ctx, remote, nil, ovs.Database); err != nil {
		return err
	}
	rows, err := h.t.Ask(ctx, remote, nil, ovs.Database,
		ovs.Select{Table: "Open_vSwitch", Columns: []string{"external_ids"}},
		ovs.Select{Table: "Bridge", Columns: []string{"name", "fail_mode", "datapath_type"}},
		ovs.Select{Table: "Interface", Columns: []string{"name", "type", "external_ids", "options", "ofport", "error"}})
	if err != nil {
		return err
	}
	if len(rows[0]) == 0 {
		return ovs.ErrNoRoot
	}
	h.ids, h.bridges, h.interfaces = rows[0][0].Map("external_ids"), rows[1], rows[2]
	return nil
}

// name is the node's name: from the flags, else from Open vSwitch, else from the
// kernel.
func (h *facts) name() {
	if h.c.Node.Name == "" {
		h.c.Node.Name = h.ids[names.OVSHostname]
	}
	if h.c.Node.Name == "" {
		h.c.Node.Name, _ = os.Hostname() // which can't fail on Linux once the kernel has started
	}
}

var errNoRemote = errors.New("external_ids:" + names.OVSRemote + " is not set")

// readSouthbound asks ovn-controller's servers in turn, with its keys, until one
// answers.
func (h *facts) readSouthbound(ctx context.Context) error {
	if h.ovsErr != nil {
		return h.ovsErr
	}
	remotes := h.ids[names.OVSRemote]
	if remotes == "" {
		return errNoRemote
	}
	if strings.Contains(remotes, "ssl:") {
		keys, err := h.keys(ctx)
		if err != nil {
			return err
		}
		h.sbKeys = keys
	}
	var errs []error
	for _, remote := range config.ParseRemotes(remotes) {
		rows, err := h.t.Ask(ctx, remote, h.sbKeys, ovs.SouthboundDatabase,
			ovs.Select{Table: "Chassis", Columns: []string{"name", "hostname"}},
			ovs.Select{Table: "Encap", Columns: []string{"chassis_name", "ip", "type"}},
			ovs.Select{Table: "SB_Global", Columns: []string{"options"}})
		if err == nil {
			h.sbRemote, h.chassis, h.encaps = remote, rows[0], rows[1]
			if len(rows[2]) > 0 {
				h.global = rows[2][0].Map("options")
			}
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// keys are those of the SSL row, which ovn-controller uses too (ovn-controller(8)).
func (h *facts) keys(ctx context.Context) (*tls.Config, error) {
	rows, err := h.t.Ask(ctx, h.c.Node.OVSAddress, nil, ovs.Database,
		ovs.Select{Table: "SSL", Columns: []string{"private_key", "certificate", "ca_cert"}})
	if err != nil {
		return nil, err
	}
	if len(rows[0]) == 0 {
		return nil, errors.New("an ssl: address needs keys, and Open vSwitch has none: " +
			"`ovs-vsctl set-ssl KEY CERTIFICATE CA`")
	}
	r := rows[0][0]
	keys, err := tlsfiles.Load(config.Keys{PrivKey: r.Text("private_key"), Cert: r.Text("certificate"),
		CACert: r.Text("ca_cert")})
	if err != nil {
		return nil, fmt.Errorf("reading the keys that Open vSwitch names: %w", err)
	}
	return keys, nil
}

// plan computes what `ovnkube node` would want of this node, and reads what the kernel
// has. The error says why the kernel's part can't be compared.
func (h *facts) plan() error {
	subnetsErr := h.findSubnets()
	own, err := h.findOwn()
	if err != nil {
		return err
	}
	known := hostfacts.Node{Subnets: h.subnets, EncapIPs: h.encapIPs(), Own: own}
	if h.host, h.places, err = hostfacts.Gather(known, hostfacts.ExternalIDs(h.ids), h.t.Kernel); err != nil {
		return err
	}
	var failed []error
	h.want, failed = all.Plan(h.host, h.c.Node)
	notKernel := func(err error) bool { return errors.Is(err, encap.ErrNoAddress) }
	failed = slices.DeleteFunc(failed, notKernel)
	if err := cmp.Or(subnetsErr, errors.Join(failed...)); err != nil {
		return err
	}
	h.have, err = h.t.Kernel.Read(h.want.Host)
	return err
}

// encapIPs are the tunnel addresses that are given, else those that Open vSwitch
// has.
func (h *facts) encapIPs() []netip.Addr {
	if len(h.c.Node.EncapIPs) > 0 {
		return h.c.Node.EncapIPs
	}
	set, _ := config.ParseAddrs(names.OVSEncapIP, h.ids[names.OVSEncapIP]) // checkEncapIP reports what is wrong with them
	return set
}

// findOwn is the addresses by which the cluster knows the node: those of the Node, or
// without a Node, those in the routes. The plan's routes have them.
func (h *facts) findOwn() ([]netip.Addr, error) {
	own, err := hostfacts.OnHost(h.t.Kernel, hostfacts.Addrs(h.node.InternalIPs))
	if len(own) > 0 || err != nil {
		return own, err
	}
	var want []hostplan.Item
	for _, s := range []string{names.HairpinSource4, names.HairpinSource6} {
		a := netip.MustParseAddr(s)
		want = append(want, hostplan.Route{Dest: ipnet.Single(a)})
	}
	have, err := h.t.Kernel.Read(want)
	if err != nil {
		return nil, err
	}
	for _, i := range have {
		wanted := func(w hostplan.Item) bool { return w.Key() == i.Key() }
		if r, ok := i.(hostplan.Route); ok && r.Src.IsValid() && slices.ContainsFunc(want, wanted) {
			own = append(own, r.Src)
		}
	}
	return own, nil
}

// errNoSubnets says that no source has the node's subnets.
var errNoSubnets = errors.New("the node has no subnets")

// errOtherFlags says that the flags are not the agent's. Commands of a plan by such
// flags would harm the node.
var errOtherFlags = errors.New("not the flags of this node's agent")

// findSubnets takes the node's subnets from its annotation, else from the
// addresses of its management port, and compares them with the flags.
func (h *facts) findSubnets() error {
	if err := h.readSubnets(); err != nil {
		return err
	}
	for _, s := range h.subnets {
		if !slices.ContainsFunc(h.c.Node.ClusterSubnets, func(c config.ClusterSubnet) bool { return c.CIDR.Overlaps(s) }) {
			return fmt.Errorf("%w: the node's subnet %s is in none of --cluster-subnets %s",
				errOtherFlags, s, config.SubnetList(h.c.Node.ClusterSubnets))
		}
	}
	return nil
}

func (h *facts) readSubnets() error {
	if value := h.node.Annotations[annotation.NodeSubnets]; value != "" {
		subnets, err := annotation.ParseNodeSubnets(value)
		h.subnets, h.source = subnets, "annotation "+annotation.NodeSubnets
		return err
	}
	if h.nodeOK {
		return errNoSubnets
	}
	link := names.ManagementInterface(h.c.Node.Name)
	have, err := h.t.Kernel.Read([]hostplan.Item{hostplan.Link{Name: link}})
	if err != nil {
		return err
	}
	for _, i := range have {
		if a, ok := i.(hostplan.Addr); ok {
			h.subnets = append(h.subnets, a.Prefix.Masked())
		}
	}
	h.source = "addresses of " + link
	if len(h.subnets) == 0 {
		return errNoSubnets
	}
	slices.SortFunc(h.subnets, netip.Prefix.Compare)
	return nil
}

// mtu is the MTU of pods and the management port.
func (h *facts) mtu() (int, error) { return encap.MTU(h.host, h.c.Node) }

// named is the row of this name.
func named(rows []ovs.Row, name string) (ovs.Row, bool) {
	i := slices.IndexFunc(rows, func(r ovs.Row) bool { return r.Text("name") == name })
	if i < 0 {
		return nil, false
	}
	return rows[i], true
}
