package ovs

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Binding says, for a person, how far a logical port has come: what the
// Southbound database that ovn-controller uses knows of it. It is for the
// message of a wait that was in vain; it opens a connection of its own, and is
// "" when there is no answer, or none without keys (ssl:).
func (d *DB) Binding(ctx context.Context, logicalPort string) string {
	remotes, err := d.ExternalID(names.OVSRemote)
	if err != nil || remotes == "" {
		return "external_ids:" + names.OVSRemote + " is not set: ovn-controller does not know its database"
	}
	systemID, _ := d.SystemID()
	var failed []string
	for _, remote := range strings.Split(remotes, ",") {
		b, err := askBinding(ctx, remote, logicalPort)
		if err == nil {
			return b.explain(logicalPort, systemID)
		}
		failed = append(failed, err.Error())
	}
	if strings.HasPrefix(remotes, "ssl:") {
		return ""
	}
	return "the Southbound database does not answer: " + strings.Join(failed, "; ")
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
		return fmt.Sprintf("the Southbound database has no Port_Binding %s: has `ovnkube master` written the port, and does ovn-northd run?", logicalPort)
	case b.chassis == "":
		return fmt.Sprintf("port not bound: no chassis has claimed Port_Binding %s (requested-chassis %q, this node is %q); does ovn-controller run here, and is it connected (`ovn-appctl -t ovn-controller connection-status`)?",
			logicalPort, b.requested, systemID)
	case b.chassis != systemID:
		return fmt.Sprintf("port not bound here: chassis %q has Port_Binding %s, this node is %q", b.chassis, logicalPort, systemID)
	case !b.up:
		return fmt.Sprintf("flows not installed: this node has bound Port_Binding %s, but it is not up; look at ovn-controller's log", logicalPort)
	}
	return fmt.Sprintf("Port_Binding %s is bound here and up, only ovn-installed is missing; look at ovn-controller's log", logicalPort)
}

// askBinding reads the row with one transaction (RFC 7047 section 4.1.3).
func askBinding(ctx context.Context, remote, logicalPort string) (b binding, err error) {
	network, address, ok := strings.Cut(remote, ":")
	if !ok || (network != "tcp" && network != "unix") {
		return b, fmt.Errorf("%q can't be asked", remote)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return b, fmt.Errorf("asking %s: %w", remote, err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return b, fmt.Errorf("asking %s: %w", remote, err)
		}
	}
	where := []any{[]any{"logical_port", "==", logicalPort}}
	request := map[string]any{"id": 0, "method": "transact", "params": []any{
		"OVN_Southbound",
		map[string]any{"op": "select", "table": "Port_Binding", "where": where, "columns": []string{"chassis", "options", "up"}},
		map[string]any{"op": "select", "table": "Chassis", "where": []any{}, "columns": []string{"_uuid", "name"}},
	}}
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return b, fmt.Errorf("asking %s: %w", remote, err)
	}
	var answer struct {
		Error  any
		Result []struct{ Rows []map[string]any }
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return b, fmt.Errorf("asking %s: %w", remote, err)
	}
	if answer.Error != nil || len(answer.Result) != 2 {
		return b, fmt.Errorf("asking %s: it answers %v", remote, answer.Error)
	}
	if rows := answer.Result[0].Rows; len(rows) > 0 {
		b = readBinding(rows[0], answer.Result[1].Rows)
	}
	return b, nil
}

// readBinding takes the row from its JSON form (RFC 7047 section 5.1: a UUID
// is ["uuid","..."], a map ["map",[[k,v],...]], an absent value ["set",[]]).
func readBinding(row map[string]any, chassis []map[string]any) binding {
	b := binding{found: true}
	b.up, _ = row["up"].(bool)
	if options, ok := row["options"].([]any); ok && len(options) == 2 {
		pairs, _ := options[1].([]any)
		for _, p := range pairs {
			if kv, ok := p.([]any); ok && len(kv) == 2 && kv[0] == "requested-chassis" {
				b.requested, _ = kv[1].(string)
			}
		}
	}
	claimed := fmt.Sprint(row["chassis"])
	for _, c := range chassis {
		if fmt.Sprint(c["_uuid"]) == claimed {
			b.chassis, _ = c["name"].(string)
		}
	}
	return b
}
