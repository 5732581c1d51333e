package ovs

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/tlsfiles"
)

// SouthboundDatabase is the name of the Southbound database in its schema, and
// Database that of Open vSwitch's own.
const (
	SouthboundDatabase = "OVN_Southbound"
	Database           = "Open_vSwitch"
)

// Binding explains, for an error message, how far a logical port has come, by the
// Southbound database that ovn-controller uses. It opens a connection of its own, with ovn-controller's keys. It is ""
// when there is no answer, and no keys are known (ssl:).
func (d *DB) Binding(ctx context.Context, logicalPort string) string {
	remotes, err := d.ExternalID(names.OVSRemote)
	if err != nil || remotes == "" {
		return "external_ids:" + names.OVSRemote + " is not set: ovn-controller does not know its database"
	}
	systemID, _ := d.SystemID()
	var keys *tls.Config
	if strings.Contains(remotes, "ssl:") {
		files, err := d.Keys()
		if err != nil || files == (config.Keys{}) {
			return "" // ovn-controller may have keys on its command line
		}
		if keys, err = tlsfiles.Load(files); err != nil {
			return "the Southbound database can't be asked: " + err.Error()
		}
	}
	var failed []string
	for _, remote := range config.ParseRemotes(remotes) {
		why, err := ExplainBinding(ctx, remote, keys, logicalPort, systemID)
		if err == nil {
			return why
		}
		failed = append(failed, err.Error())
	}
	return "the Southbound database does not answer: " + strings.Join(failed, "; ")
}

// ExplainBinding asks one Southbound database what Binding says.
func ExplainBinding(
	ctx context.Context, remote string, keys *tls.Config, logicalPort, systemID string,
) (string, error) {
	b, err := askBinding(ctx, remote, keys, logicalPort)
	if err != nil {
		return "", err
	}
	return b.explain(logicalPort, systemID), nil
}

// binding is a Port_Binding row (ovn-sb(5)) with the name of its chassis.
type binding struct {
	found     bool
	chassis   string // name, "" when nobody has claimed the port
	requested string // options:requested-chassis
	up        bool
}

func (b binding) explain(logicalPort, systemID string) string {
	switch {
	case !b.found:
		return fmt.Sprintf("the Southbound database has no Port_Binding %s: has `ovnkube master` written the port, "+
			"and does ovn-northd run?", logicalPort)
	case b.chassis == "":
		return fmt.Sprintf("port not bound: no chassis has claimed Port_Binding %s (requested-chassis %q, "+
			"this node is %q); does ovn-controller run here, "+
			"and is it connected (`ovn-appctl -t ovn-controller connection-status`)?",
			logicalPort, b.requested, systemID)
	case b.chassis != systemID:
		return fmt.Sprintf("port not bound here: chassis %q has Port_Binding %s, this node is %q", b.chassis, logicalPort,
			systemID)
	case !b.up:
		return fmt.Sprintf("flows not installed: this node has bound Port_Binding %s, but it is not up; "+
			"look at ovn-controller's log", logicalPort)
	}
	return fmt.Sprintf("Port_Binding %s is bound here and up, only ovn-installed is missing; look at ovn-controller's log",
		logicalPort)
}

// askBinding reads the row.
func askBinding(ctx context.Context, remote string, keys *tls.Config, logicalPort string) (b binding, err error) {
	rows, err := Ask(ctx, remote, keys, SouthboundDatabase,
		Select{Table: "Port_Binding", Columns: []string{"chassis", "options", "up"}, Where: Is("logical_port", logicalPort)},
		Select{Table: "Chassis", Columns: []string{"_uuid", "name"}})
	if err != nil || len(rows[0]) == 0 {
		return b, err
	}
	row := rows[0][0]
	b = binding{found: true, up: row.Bool("up"), requested: row.Map("options")["requested-chassis"]}
	for _, c := range rows[1] {
		if row.Text("chassis") == c.Text("_uuid") {
			b.chassis = c.Text("name")
		}
	}
	return b, nil
}
