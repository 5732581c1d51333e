package policyshape

import (
	"context"
	"errors"
	"fmt"

	"github.com/northbound-net/northbound/test/scale/central"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

// ovn is what runs of OVN and Open vSwitch, from a root filesystem.
type ovn struct {
	*central.System
	nb, sb, conf                 *ovsdbwire.Client
	northd, controller, openflow *process.Process
}

// central starts the databases. ovn-northd starts when the Northbound one is full.
func (o *ovn) central(ctx context.Context) (err error) {
	if o.nb, _, err = o.Database(ctx, "nb", "ovn/ovn-nb.ovsschema"); err != nil {
		return err
	}
	if o.sb, _, err = o.Database(ctx, "sb", "ovn/ovn-sb.ovsschema"); err != nil {
		return err
	}
	o.conf, _, err = o.Database(ctx, "conf", "openvswitch/vswitch.ovsschema")
	return err
}

func (o *ovn) startNorthd() (err error) {
	o.northd, err = o.Northd()
	return err
}

// fakeChassis makes all chassis but the first, and binds the pods to them.
func (o *ovn) fakeChassis(l *cluster) error {
	for n := 1; n < l.Switches; n++ {
		name := nodeName(n)
		ops := []any{
			insert("Encap", name, map[string]any{"type": "geneve", "ip": fmt.Sprintf("192.0.2.%d", n), "chassis_name": name}),
			insert("Chassis", name, map[string]any{"name": name, "hostname": name, "encaps": refs("Encap", name)})}
		for i := range l.Pods {
			ops = append(ops, bind(pod{n, i}))
		}
		if err := o.sb.Transact(southbound, ops...); err != nil {
			return fmt.Errorf("making chassis %s: %w", name, err)
		}
	}
	return nil
}

// bind binds a pod's port to its fake chassis.
func bind(p pod) operation {
	return operation{"op": "update", "table": "Port_Binding", "where": []any{[]any{"logical_port", "==", p.name()}},
		"row": map[string]any{"chassis": ref("Chassis", nodeName(p.node)), "up": true}}
}

// startSwitch starts Open vSwitch for the first chassis, with interfaces for its pods and for so many later ones.
func (o *ovn) startSwitch(ctx context.Context, pods int) (err error) {
	o.openflow, err = o.Start("vswitchd", "ovs-vswitchd", "--enable-dummy=override", "--disable-system",
		"unix:"+o.Inside("conf.sock"))
	if err != nil {
		return err
	}
	args := []string{"ovs-vsctl", "--db=unix:" + o.Inside("conf.sock"), "--timeout=60", "--no-wait", "init",
		"--", "set", "Open_vSwitch", ".", "external_ids:system-id=" + nodeName(0), "external_ids:hostname=" + nodeName(0),
		"external_ids:ovn-remote=unix:" + o.Inside("sb.sock"), "external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip=192.0.2.254", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1",
		"--", "add-br", "br-int", "--", "set", "bridge", "br-int", "fail-mode=secure", "datapath_type=netdev"}
	for i := range pods {
		name := interfaceOf(i)
		args = append(args, "--", "add-port", "br-int", name, "--", "set", "Interface", name,
			"external_ids:iface-id="+pod{0, i}.name())
	}
	_, err = o.Run(ctx, args...)
	return err
}

func interfaceOf(i int) string { return fmt.Sprintf("vif%d", i) }

func (o *ovn) startController() (err error) {
	o.controller, err = o.Start("controller", "ovn-controller", "unix:"+o.Inside("conf.sock"))
	return err
}

// close ends everything.
func (o *ovn) close() error {
	var errs []error
	for _, c := range []*ovsdbwire.Client{o.nb, o.sb, o.conf} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for _, p := range []*process.Process{o.controller, o.openflow, o.northd} {
		if p != nil {
			errs = append(errs, p.Kill()) // their data is removed, so they need not end in order
		}
	}
	return errors.Join(append(errs, o.Close())...)
}
