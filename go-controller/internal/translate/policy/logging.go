package policy

import (
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// logTo has an ACL log the packets that it decides about. A meter limits how many lines each ACL writes on a node.
func (r *policyRows) logTo(acl *nbdb.ACL, d direction, rule string, severity cluster.Severity) {
	if severity == "" {
		return
	}
	name := names.LoggedRule{Kind: r.Owner.Kind, Owner: r.Owner.Name, Direction: d.role, Rule: rule}.String()
	level := string(severity)
	acl.Log, acl.Severity, acl.Name = true, &level, &name
	if r.state.Config.ACLLogRate > 0 {
		meter := names.LogMeter
		acl.Meter = &meter
	}
}

// logDenied denies once more what Isolation denies to the policy's pods, and logs it. The ACLs of Isolation are for all
// pods of a node, whatever their namespaces log.
func (r *policyRows) logDenied(d direction, severity cluster.Severity) {
	role := names.RoleDenyIn
	if d == egress() {
		role = names.RoleDenyOut
	}
	acl := d.acl(names.ACLPolicyLogged, nbdb.ACLActionDrop, d.pods(names.SelectorGroup(r.subject))+" && ip")
	acl.Tier = tierIn(r.state, r.network)
	r.logTo(acl, d, names.DeniedByDefault, severity)
	r.rows = append(r.rows, r.Row(r.network.RuleRole(role), acl, r.group()))
}

// group lists the ACLs of the policy's own pods.
func (r *policyRows) group() nb.Slot {
	group := names.SelectorRow(nbdb.PortGroupTable, r.subject, names.RoleGroup)
	return nb.Slot{In: nb.Ref{Table: nbdb.PortGroupTable, UUID: group}, Column: "acls"}
}
