package serviceport_test

import (
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/serviceport"
)

// Kept is what leads to endpoints, at places of Local services that are served
// still; where nothing is there, and nothing to keep, the plan is as it was.
func TestRetain(t *testing.T) {
	ports := func(lines ...string) hostplan.ServicePorts {
		return hostplan.ServicePorts{Link: "k8s-n1", Entries: strings.Join(lines, "\n")}
	}
	want := ports("inside TCP 0.0.0.0:30080", "inside TCP 0.0.0.0:30081", "serve TCP 0.0.0.0:30080 to 10.96.0.10:80",
		"serve TCP 0.0.0.0:30081 to 10.96.0.11:80", "serve TCP 0.0.0.0:30082 to 10.96.0.12:80")
	have := hostplan.ServicePorts{Link: "another", Entries: strings.Join([]string{
		"away TCP 0.0.0.0:30081 from 172.18.0.2/32 to 172.18.0.3:30081", "inside TCP 0.0.0.0:30083",
		"local TCP 0.0.0.0:30082 to 10.244.1.5:8080", "local UDP 0.0.0.0:30080 to 10.244.1.5:8080",
		"serve TCP 0.0.0.0:30080 to 10.96.0.99:80", "share TCP 0.0.0.0:30080 bucket 0 to 10.244.1.5:8080",
		"stick TCP 0.0.0.0:30083 bucket 0 to 10.244.1.5:8080", "what is this",
	}, "\n")}
	plan := hostplan.Plan{Host: []hostplan.Item{want}}
	kept := ports("away TCP 0.0.0.0:30081 from 172.18.0.2/32 to 172.18.0.3:30081", "inside TCP 0.0.0.0:30080",
		"inside TCP 0.0.0.0:30081",
		"serve TCP 0.0.0.0:30080 to 10.96.0.10:80", "serve TCP 0.0.0.0:30081 to 10.96.0.11:80",
		"serve TCP 0.0.0.0:30082 to 10.96.0.12:80", "share TCP 0.0.0.0:30080 bucket 0 to 10.244.1.5:8080")
	away := ports("away TCP 0.0.0.0:30081 from 172.18.0.2/32 to 172.18.0.3:30081", want.Entries)
	of := hostplan.ServiceEntryKind.OfEndpoints
	for _, c := range []struct {
		plan  hostplan.Plan
		have  []hostplan.Item
		kinds func(hostplan.ServiceEntryKind) bool
		want  hostplan.ServicePorts
	}{
		{plan, []hostplan.Item{hostplan.Link{Name: "lo"}, have}, of, kept},
		{plan, []hostplan.Item{have}, hostplan.ServiceEntryKind.Remote, away}, {plan, nil, of, want},
		{hostplan.Plan{Host: []hostplan.Item{ports()}}, []hostplan.Item{have}, of, ports()},
	} {
		if got := serviceport.Retain(c.plan, c.have, c.kinds).Host[0]; got != c.want {
			t.Errorf("kept is\n%v\nwant\n%v", got.(hostplan.ServicePorts).Entries, c.want.Entries)
		}
	}
	if plan.Host[0] != want {
		t.Error("the plan that was given has changed")
	}
}
