package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/encap"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// fixRestartOVS starts Open vSwitch, or restarts it. It may run on the machine or in a pod.
const fixRestartOVS = "systemctl restart openvswitch-switch  # or, in a pod: delete that of app=ovs-node on this node"

func checkOVSDatabase(_ context.Context, h *facts) Finding {
	switch lacking := ovs.Lacking(h.schema); {
	case errors.Is(h.ovsErr, ovs.ErrNoRoot):
		return problem("%v", h.ovsErr).fixed("ovs-vsctl --no-wait init")
	case h.ovsErr != nil:
		return problem("the Open vSwitch database does not answer: %v", h.ovsErr).fixed(fixRestartOVS,
			"# or --ovs-address is another: now "+h.c.Node.OVSAddress)
	case len(lacking) > 0:
		return problem("its schema %s has no %s", h.schema.Version, several(lacking)).
			fixed("# upgrade Open vSwitch to "+OldestOVS+" or newer; when it is, its database is converted by a restart:",
				fixRestartOVS)
	}
	return ok("%s, schema %s", h.c.Node.OVSAddress, h.schema.Version)
}

func checkVSwitchd(ctx context.Context, h *facts) Finding {
	dir, local := h.c.Node.OVSRunDir()
	if !local {
		return unchecked("--ovs-address %s is no socket of this host", h.c.Node.OVSAddress)
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	out, err := h.t.Appctl(ctx, dir, "ovs-vswitchd", "version")
	version := VersionIn(out)
	switch {
	case err != nil:
		return problem("ovs-vswitchd does not answer: %v", err).fixed(fixRestartOVS,
			"# why it ended: /var/log/openvswitch/ovs-vswitchd.log")
	case !AtLeast(version, OldestOVS):
		return problem("ovs-vswitchd is %s, older than %s", version, OldestOVS).fixed("# upgrade Open vSwitch")
	case h.c.Node.DatapathType == config.DatapathNetdev && BrokenUserspace(version):
		return problem("the userspace datapath of Open vSwitch %s aborts now and then in connection tracking", version).
			fixed("# upgrade Open vSwitch to 3.1.3, 3.2.3, 3.3.0 or newer")
	}
	return ok("ovs-vswitchd %s", version)
}

func checkDatapath(_ context.Context, h *facts) Finding {
	if h.c.Node.DatapathType == config.DatapathNetdev {
		if _, err := os.Stat("/dev/net/tun"); err != nil {
			return problem("the userspace datapath makes its ports with /dev/net/tun: %v", err).fixed("modprobe tun")
		}
		return ok("userspace")
	}
	has, err := h.t.Kernel.HasFamily("ovs_datapath")
	if err != nil {
		return unchecked("%v", err)
	}
	if !has {
		return problem("the kernel's Open vSwitch module is not loaded").fixed("modprobe openvswitch",
			"# where there is no such module: --datapath-type "+config.DatapathNetdev)
	}
	return ok("kernel module")
}

func checkBridge(_ context.Context, h *facts) Finding {
	want := encap.Bridge(h.c.Node)
	row, exists := named(h.bridges, want.Name)
	have := hostplan.Bridge{Name: want.Name, FailMode: row.Text("fail_mode"), DatapathType: row.Text("datapath_type")}
	if have.DatapathType == "" {
		have.DatapathType = config.DatapathSystem // ovs-vswitchd.conf.db(5): the empty string means system
	}
	fix := fmt.Sprintf("ovs-vsctl --may-exist add-br %s -- set bridge %s fail_mode=%s datapath_type=%s", want.Name,
		want.Name, want.FailMode, want.DatapathType)
	switch {
	case !exists:
		return problem("there is no bridge %s", want.Name).fixed(fix)
	case have != want:
		return problem("%s, want fail_mode=%s datapath_type=%s", have, want.FailMode, want.DatapathType).fixed(fix)
	}
	if i, exists := named(h.interfaces, want.Name); exists && i.Text("error") != "" {
		return problem("ovs-vswitchd can't open %s: %s", want.Name, i.Text("error")).
			fixed("# see the check datapath, and /var/log/openvswitch/ovs-vswitchd.log")
	}
	return ok("fail_mode=%s datapath_type=%s", have.FailMode, have.DatapathType)
}

// checkExternalIDs compares the keys that ovn-controller reads with the plan of
// `ovnkube node`.
func checkExternalIDs(_ context.Context, h *facts) Finding {
	if len(h.host.EncapIPs) == 0 {
		return unchecked("%v", encap.ErrNoAddress)
	}
	ids := maps.Clone(h.want.OVS.ExternalIDs)
	if _, why := h.gatewayConfig(); why == "" {
		delete(ids, names.OVSBridgeMappings) // the check external-bridge has them, and one more
	}
	var f faults
	for _, k := range slices.Sorted(maps.Keys(ids)) {
		switch want, have := ids[k], h.ids[k]; want {
		case have:
		case "":
			f.add(fmt.Sprintf("%s is %q, want none", k, have), "ovs-vsctl remove Open_vSwitch . external_ids "+k)
		default:
			f.add(fmt.Sprintf("%s is %q, want %q", k, have, want),
				fmt.Sprintf("ovs-vsctl set Open_vSwitch . external_ids:%s='%q'", k, want))
		}
	}
	return f.finding("%s=%s %s=%s %s=%s", names.OVSSystemID, h.ids[names.OVSSystemID], names.OVSEncapType,
		h.ids[names.OVSEncapType], names.OVSEncapIP, h.ids[names.OVSEncapIP])
}

// several joins a list, and shortens a long one.
func several(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s; and %d more", strings.Join(list[:most], "; "), len(list)-most)
	}
	return strings.Join(list, "; ")
}
