package verdict

import (
	"fmt"

	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Stage is a place on the way through a logical switch where OVN applies ACLs.
type Stage string

// The stages, in the order in which a packet meets them.
const (
	FromLport        Stage = "from-lport"
	FromLportAfterLB Stage = "from-lport after load balancing" // ACLs with options:apply-after-lb
	ToLport          Stage = "to-lport"
)

// stages lists them in their order.
func stages() []Stage { return []Stage{FromLport, FromLportAfterLB, ToLport} }

func stageOf(acl *nbdb.ACL) Stage {
	switch {
	case acl.Direction == nbdb.ACLDirectionToLport:
		return ToLport
	case acl.Options["apply-after-lb"] == "true":
		return FromLportAfterLB
	}
	return FromLport
}

// Step is what the ACLs of one stage of one switch do with a packet.
type Step struct {
	Switch  string
	Stage   Stage
	Allowed bool
	// ACL decided; nil when no ACL matched, and the packet is allowed by default.
	ACL *nbdb.ACL
	// Passed are the ACLs of action pass that matched, by tier: each left the decision to the next tier.
	Passed []*nbdb.ACL
	// Void are the void ACLs that come before ACL: they could have decided.
	Void []*nbdb.ACL
}

// Stage asks the ACLs of one stage of a switch. The packet is as it is at that stage: before load balancing the
// destination is the service's address. OVN does not know Outport before ToLport.
//
// Two ACLs of the same priority that match and differ are an error: OVN obeys either.
func (e *Evaluator) Stage(stage Stage, logicalSwitch string, p Packet) (Step, error) {
	s := e.byName[logicalSwitch]
	if s == nil {
		return Step{}, fmt.Errorf("evaluating ACLs: there is no logical switch %q", logicalSwitch)
	}
	if err := p.valid(); err != nil {
		return Step{}, fmt.Errorf("evaluating ACLs of switch %s: %w", logicalSwitch, err)
	}
	return s.step(stage, p)
}

func (s *logicalSwitch) step(stage Stage, p Packet) (Step, error) {
	out := Step{Switch: s.name, Stage: stage, Allowed: true}
	if p.neighborDiscovery() {
		return out, nil
	}
	if stage != ToLport {
		p.Outport = ""
	}
	for tier := range 4 {
		acl, err := s.decide(&out, tier, &p)
		if err != nil {
			return Step{}, err
		}
		if acl != nil && acl.Action != nbdb.ACLActionPass {
			out.ACL, out.Allowed = acl, outcome(acl) == "allow"
			break
		}
		if acl != nil {
			out.Passed = append(out.Passed, acl)
		}
	}
	return out, nil
}

// decide is the ACL of a tier that OVN obeys, nil when none matches. It adds void ACLs to the step.
func (s *logicalSwitch) decide(step *Step, tier int, p *Packet) (*nbdb.ACL, error) {
	var found *nbdb.ACL
	for _, r := range s.rules[step.Stage] {
		if r.acl.Tier != tier {
			continue
		}
		if found != nil && r.acl.Priority < found.Priority {
			break
		}
		applies, void, err := s.applies(r, p)
		switch {
		case err != nil:
			return nil, err
		case void:
			step.Void = append(step.Void, r.acl)
		case applies && found == nil:
			found = r.acl
		case applies && outcome(r.acl) != outcome(found):
			return nil, fmt.Errorf("evaluating ACLs of switch %s: ACLs %s (%s) and %s (%s) have priority %d and match the "+
				"same packet, want different priorities", s.name, found.UUID, found.Action, r.acl.UUID, r.acl.Action,
				found.Priority)
		}
	}
	return found, nil
}

// outcome is what an ACL's action means for the first packet of a connection.
func outcome(acl *nbdb.ACL) string {
	switch acl.Action {
	case nbdb.ACLActionPass:
		return "pass"
	case nbdb.ACLActionDrop, nbdb.ACLActionReject:
		return "drop"
	}
	return "allow"
}
