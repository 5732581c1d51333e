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
	nb, sb *ovsdbwire.Client
	northd *process.Process
	first  *central.Chassis
}

// central starts the databases. ovn-northd starts when the Northbound one is full.
func (o *ovn) central(ctx context.Context) (err error) {
	if o.nb, _, err = o.Database(ctx, "nb", "ovn/ovn-nb.ovsschema"); err != nil {
		return err
	}
	if o.sb, _, err = o.Database(ctx, "sb", "ovn/ovn-sb.ovsschema"); err != nil {
		return err
	}
	o.first, err = o.NewChassis(ctx)
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
func (o *ovn) startSwitch(ctx context.Context, pods int) error {
	if err := o.first.StartSwitch(ctx, nodeName(0)); err != nil {
		return err
	}
	ports := map[string]string{}
	for i := range pods {
		ports[interfaceOf(i)] = pod{0, i}.name()
	}
	return o.first.AddInterfaces(ctx, ports)
}

func interfaceOf(i int) string { return fmt.Sprintf("vif%d", i) }

// close ends everything.
func (o *ovn) close() error {
	var errs []error
	for _, c := range []*ovsdbwire.Client{o.nb, o.sb} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if o.first != nil {
		errs = append(errs, o.first.Close())
	}
	if o.northd != nil {
		errs = append(errs, o.northd.Kill()) // its data is removed, so it need not end in order
	}
	return errors.Join(append(errs, o.Close())...)
}
