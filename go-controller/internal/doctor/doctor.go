package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Config says what to examine.
type Config struct {
	Node       config.Node   // as `ovnkube node` has it; Name may be empty: then Open vSwitch's hostname is it
	Kubernetes bool          // whether an API server was named
	Northbound *config.OVSDB // nil: not asked
	Timeout    time.Duration // of each question, at most
}

// Status is the outcome of a check.
type Status string

// The three outcomes. They are part of the JSON output.
const (
	OK         Status = "ok"
	Problem    Status = "problem"
	NotChecked Status = "not checked"
)

// Finding is the outcome of one check.
type Finding struct {
	Check   string   `json:"check"`         // its name, the same in every version
	Status  Status   `json:"status"`        // one of the three
	Message string   `json:"message"`       // what was found, or why nothing could be
	Fix     []string `json:"fix,omitempty"` // under a problem: commands to type, or what to look at after "#"
}

// Diagnosis is the outcome of all checks, in their order.
type Diagnosis struct {
	Node     string    `json:"node"`
	Problems int       `json:"problems"`
	Findings []Finding `json:"findings"`
}

func ok(format string, args ...any) Finding {
	return Finding{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func unchecked(format string, args ...any) Finding {
	return Finding{Status: NotChecked, Message: fmt.Sprintf(format, args...)}
}

// problem makes a finding. fixed adds commands.
func problem(format string, args ...any) Finding {
	return Finding{Status: Problem, Message: fmt.Sprintf(format, args...)}
}

func (f Finding) fixed(commands ...string) Finding {
	f.Fix = append(f.Fix, commands...)
	return f
}

// The databases that checks need.
const (
	openVSwitch = "Open vSwitch"
	southbound  = "Southbound"
)

func noAnswer(database string) Finding { return unchecked("the %s database does not answer", database) }

// faults are the problems of one check, and the commands that solve them.
type faults struct{ wrong, fixes []string }

func (f *faults) add(message string, fixes ...string) {
	f.wrong = append(f.wrong, message)
	f.fixes = append(f.fixes, fixes...)
}

// finding is a problem with all faults, or what is fine without any.
func (f *faults) finding(fine string, args ...any) Finding {
	if len(f.wrong) > 0 {
		return problem("%s", several(f.wrong)).fixed(f.fixes...)
	}
	return ok(fine, args...)
}

// check is one check.
type check struct {
	name  string
	needs string // the database without which the check is not made, "" for none
	run   func(context.Context, *facts) Finding
}

// checks lists all checks. A check comes after those that it depends on.
func checks() []check {
	return []check{
		{"ovs-database", "", checkOVSDatabase},
		{"ovs-vswitchd", "", checkVSwitchd},
		{"datapath", "", checkDatapath},
		{"br-int", openVSwitch, checkBridge},
		{"external-ids", openVSwitch, checkExternalIDs},
		{"encap-ip", "", checkEncapIP},
		{"ovn-controller", "", checkController},
		{"southbound", openVSwitch, checkSouthbound},
		{"database-access", openVSwitch, checkDatabaseAccess},
		{"chassis", southbound, checkChassis},
		{"duplicate-chassis", southbound, checkDuplicates},
		{"tunnels", southbound, checkTunnels},
		{"path-mtu", southbound, checkPaths},
		{"fragments", southbound, checkFragments},
		{"subnets", "", checkSubnets},
		{"management-port", openVSwitch, checkManagementPort},
		{"management-interface", "", checkManagementInterface},
		{"router", "", checkRouter},
		{"routes", "", checkRoutes},
		{"sysctls", "", checkSysctls},
		{"local-ports", "", checkLocalPorts},
		{"masquerade", "", checkMasquerade},
		{"hairpin", "", checkHairpin},
		{"anti-spoofing", "", checkAntiSpoof},
		{"database-drop", "", checkDatabaseDrop},
		{"pod-interfaces", openVSwitch, checkPodInterfaces},
		{"load-balancers", southbound, checkLoadBalancers},
		{"service-ports", "", checkServicePorts},
		{"external-bridge", openVSwitch, checkExternalBridge},
		{"bridge-mappings", openVSwitch, checkBridgeMappings},
		{"cni-conf", "", checkCNIConf},
		{"cni-plugins", "", checkCNIPlugins},
		{"agent", "", checkAgent},
		{"api-server", "", checkAPIServer},
		{"clock", "", checkClock},
		{"northbound", "", checkNorthbound},
		{"acl-names", "", checkACLNames},
	}
}

// Examine runs every check. It takes as long as the slowest answer, at most a few times
// Config.Timeout.
func Examine(ctx context.Context, c Config, t Tools) Diagnosis {
	h := gather(ctx, c, t)
	r := Diagnosis{Node: h.c.Node.Name}
	failed := map[string]error{openVSwitch: h.ovsErr, southbound: h.sbErr}
	for _, check := range checks() {
		f := noAnswer(check.needs)
		if failed[check.needs] == nil {
			f = check.run(ctx, h)
		}
		f.Check = check.name
		if f.Status == Problem {
			r.Problems++
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}
