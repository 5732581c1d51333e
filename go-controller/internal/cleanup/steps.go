package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/before"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/nft"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/gateway"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// openVSwitch removes the flows of the external bridge, patch ports to br-int, br-int, and OVN's keys. The external
// bridge itself stays: it may have the node's only NIC.
func (n Node) openVSwitch(ctx context.Context, db *ovs.DB) (out []step, err error) {
	bridge, err := db.ExternalID(names.OVSGatewayBridge)
	if err != nil {
		return nil, err
	}
	if bridge != "" && db.HasBridge(bridge) {
		flows, none := ovs.NewFlows(n.OVSAddress), gateway.NoFlows(bridge)
		changes, err := flows.Preview(ctx, none)
		if err != nil {
			return nil, err
		}
		if len(changes) > 0 {
			line := fmt.Sprintf("- %d flows of Northbound on bridge %s", len(changes), bridge)
			out = append(out, step{line, func(ctx context.Context) error {
				_, err := flows.Converge(ctx, none)
				return err
			}})
		}
	}
	for _, p := range db.PatchesTo(names.IntegrationBridge) {
		out = append(out, step{"- port " + p, func(ctx context.Context) error {
			_, err := db.RemovePort(ctx, p)
			return err
		}})
	}
	if db.HasBridge(names.IntegrationBridge) {
		out = append(out, step{"- bridge " + names.IntegrationBridge, func(ctx context.Context) error {
			_, err := db.RemoveBridge(ctx, names.IntegrationBridge)
			return err
		}})
	}
	keys, err := db.Keys()
	if err == nil && (db.OwnKeys() || strings.HasPrefix(keys.PrivKey, n.StateDir+"/")) {
		out = append(out, step{"- ssl private_key=" + keys.PrivKey, db.RemoveKeys})
	}
	ids := map[string]string{}
	for _, k := range append(names.OVNKeys(), names.OVSAPIServer, names.OVSAPICACert, names.OVSAPIToken) {
		ids[k] = ""
	}
	more, idErr := externalIDs(db, ids)
	return append(out, more...), errors.Join(err, idErr)
}

// tunnelBridge removes the bridge that has the tunnels' NIC.
func (n Node) tunnelBridge(db *ovs.DB) []step {
	if n.Bridge == "" || !db.HasBridge(n.Bridge) {
		return nil
	}
	return []step{{"- bridge " + n.Bridge + ", whose addresses its NIC gets back",
		func(ctx context.Context) error { return n.Return(ctx, n.Bridge) }}}
}

// externalIDs makes keys of the Open_vSwitch row have these values; "" removes one.
func externalIDs(db *ovs.DB, ids map[string]string) ([]step, error) {
	want := hostplan.OVS{ExternalIDs: ids}
	changes, err := db.Preview(want)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return []step{{strings.Join(lines, "\n"), func(ctx context.Context) error {
		_, err := db.Converge(ctx, want)
		return err
	}}}, nil
}

// kernel removes our routes and nftables' tables, and restores sysctls.
func (n Node) kernel(ctx context.Context, db *ovs.DB, k *hostnet.Netlink) (out []step, err error) {
	apply := func(c item.Change) {
		out = append(out, step{c.String(), func(context.Context) error { return k.Apply(c) }})
	}
	ours, err := k.Read(nil)
	if err != nil {
		return nil, err
	}
	for _, i := range ours {
		apply(item.Change{Have: i})
	}
	tables, err := nft.OwnTables()
	if err != nil {
		return out, err
	}
	keep, err := moved(ctx, db)
	if err != nil {
		return out, err
	}
	for _, t := range tables {
		if t == nft.IngressTable() && keep {
			continue
		}
		out = append(out, step{"- nftables' table " + t, func(context.Context) error { return nft.RemoveTable(t) }})
	}
	earlier, err := before.Open(filepath.Join(n.CNISocketDir, before.FileName))
	if err != nil {
		return out, err
	}
	sysctls := earlier.Items()
	have, err := k.Read(sysctls)
	for _, c := range item.Missing(sysctls, have) {
		if c.Have != nil { // its interface is still there
			apply(c)
		}
	}
	return out, err
}

// moved tells whether `ovnkube nics-to-bridge` has moved a NIC onto a bridge. Its rules that drop are then that
// command's, and `ovnkube bridges-to-nic` removes them.
func moved(ctx context.Context, db *ovs.DB) (bool, error) {
	links, err := nft.IngressLinks()
	for _, link := range links {
		if bridge, ok := db.BridgeOf(link); ok {
			b, err := db.Uplink(ctx, bridge)
			if err != nil || b.NIC == link {
				return true, err
			}
		}
	}
	return false, err
}

// systemID restores the name of the machine's chassis that the chart has replaced. Debian's Open vSwitch takes it from
// the file at each start. An empty earlier file says that there was none: then the name itself may stay.
func (n Node) systemID(db *ovs.DB) ([]step, error) {
	file := filepath.Join(n.OpenvSwitchDir, "system-id.conf")
	raw, err := os.ReadFile(file + earlierEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the earlier system-id: %w", err)
	}
	id := strings.TrimSpace(string(raw))
	if id == "" {
		return []step{{"- " + file, func(context.Context) error {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return os.Remove(file + earlierEnding)
		}}}, nil
	}
	steps, err := externalIDs(db, map[string]string{names.OVSSystemID: id})
	return append(steps, step{"~ " + file + ": " + id,
		func(context.Context) error { return os.Rename(file+earlierEnding, file) }}), err
}

// earlierEnding is that of the file in which the chart keeps the earlier one.
const earlierEnding = ".before-northbound"
