package central

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
	"github.com/northbound-net/northbound/test/scale/process"
)

// Chassis is a chassis with a real ovn-controller and a real Open vSwitch, whose devices are dummies: its flows are
// real, but it forwards no packets.
type Chassis struct {
	Conf                 *ovsdbwire.Client // to the database of Open vSwitch
	OpenFlow, Controller *process.Process

	system *System
}

// NewChassis starts the database "conf" of a chassis.
func (s *System) NewChassis(ctx context.Context) (c *Chassis, err error) {
	c = &Chassis{system: s}
	c.Conf, _, err = s.Database(ctx, "conf", "openvswitch/vswitch.ovsschema")
	return c, err
}

// StartSwitch starts Open vSwitch, configured for a chassis of a name.
func (c *Chassis) StartSwitch(ctx context.Context, name string) (err error) {
	s := c.system
	c.OpenFlow, err = s.Start("vswitchd", "ovs-vswitchd", "--enable-dummy=override", "--disable-system",
		"unix:"+s.Inside("conf.sock"))
	if err != nil {
		return err
	}
	return c.vsctl(ctx, "init",
		"--", "set", "Open_vSwitch", ".", "external_ids:system-id="+name, "external_ids:hostname="+name,
		"external_ids:ovn-remote=unix:"+s.Inside("sb.sock"), "external_ids:ovn-encap-type=geneve",
		"external_ids:ovn-encap-ip=192.0.2.254", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1",
		"--", "add-br", "br-int", "--", "set", "bridge", "br-int", "fail-mode=secure", "datapath_type=netdev")
}

func (c *Chassis) vsctl(ctx context.Context, args ...string) error {
	_, err := c.system.Run(ctx, append([]string{"ovs-vsctl", "--db=unix:" + c.system.Inside("conf.sock"), "--timeout=60",
		"--no-wait"}, args...)...)
	return err
}

// AddInterfaces adds interfaces to br-int. The keys are their names, the values those of logical ports.
func (c *Chassis) AddInterfaces(ctx context.Context, ports map[string]string) error {
	var args []string
	for name, port := range ports {
		args = append(args, "--", "add-port", "br-int", name, "--", "set", "Interface", name,
			"external_ids:iface-id="+port)
	}
	return c.vsctl(ctx, args...)
}

// StartController starts ovn-controller.
func (c *Chassis) StartController() (err error) {
	c.Controller, err = c.system.Start("controller", "ovn-controller", "unix:"+c.system.Inside("conf.sock"))
	return err
}

// Flows counts the flows of br-int.
func (c *Chassis) Flows(ctx context.Context) (int, error) {
	text, err := c.system.Run(ctx, "ovs-ofctl", "dump-aggregate", "unix:"+c.system.Inside("br-int.mgmt"))
	if err != nil {
		return 0, err
	}
	n := regexp.MustCompile(`flow_count=(\d+)`).FindStringSubmatch(text)
	if n == nil {
		return 0, fmt.Errorf("counting flows: ovs-ofctl says %q", text)
	}
	return strconv.Atoi(n[1])
}

// Close ends the chassis. Its data is removed, so the processes need not end in order. That of its database ends with
// the System.
func (c *Chassis) Close() error {
	var errs []error
	if c.Conf != nil {
		errs = append(errs, c.Conf.Close())
	}
	for _, p := range []*process.Process{c.Controller, c.OpenFlow} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(errs...)
}

// FakeChassis is the operations that make a chassis of a node, as its ovn-controller does when it starts. id is its
// name, and the UUID of its row.
func FakeChassis(id, node, ip string) []any {
	return []any{
		map[string]any{"op": "insert", "table": "Encap", "uuid-name": "encap", "row": map[string]any{"type": "geneve",
			"ip": ip, "chassis_name": id}},
		map[string]any{"op": "insert", "table": "Chassis", "uuid": id, "row": map[string]any{"name": id, "hostname": node,
			"encaps": []any{"named-uuid", "encap"}}},
		map[string]any{"op": "insert", "table": "Chassis_Private", "row": map[string]any{"name": id,
			"chassis": []any{"uuid", id}}},
	}
}

// Bind has a chassis take a port, as ovn-controller does.
func Bind(port, chassis string) map[string]any {
	return map[string]any{"op": "update", "table": "Port_Binding", "where": []any{[]any{"logical_port", "==", port}},
		"row": map[string]any{"chassis": []any{"uuid", chassis}, "up": true}}
}

// Count counts the rows of a table of the Southbound database.
func (s *System) Count(ctx context.Context, table string) (int, error) {
	text, err := s.Run(ctx, "ovn-sbctl", "--db=unix:"+s.Inside("sb.sock"), "--timeout=120", "--bare", "--columns=_uuid",
		"list", table)
	return len(strings.Fields(text)), err
}

// SeeConfigs has a tracker see each value of nb_cfg in rows of a table that has it, such as SB_Global.
func SeeConfigs(t *load.Tracker) func(table string, rows map[string]ovsdbwire.RowUpdate) {
	return func(_ string, rows map[string]ovsdbwire.RowUpdate) {
		for _, u := range rows {
			var row struct {
				Config int `json:"nb_cfg"`
			}
			raw := u.Content()
			if raw == nil {
				continue
			}
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fail(fmt.Errorf("reading nb_cfg: %w", err))
				return
			}
			t.See(load.Name{Name: strconv.Itoa(row.Config)})
		}
	}
}
