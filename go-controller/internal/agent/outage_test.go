package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A part that is broken counts once it has been for a while, so that one that
// is started again is no outage; at once, if nobody can rely on it yet.
func TestOutage(t *testing.T) {
	now := time.Unix(1, 0)
	o := newOutage()
	for i, step := range []struct {
		after time.Duration
		part  part
		why   string
		want  string
	}{
		{0, partPatch, "no port yet", "no port yet"},
		{0, partPatch, "", ""},
		{0, partVSwitchd, "", ""},
		{0, partVSwitchd, "dead", ""},
		{outageGrace - 1, partVSwitchd, "dead", ""},
		{1, partVSwitchd, "dead as ever", "dead as ever"},
		{0, partController, "", "dead as ever"},
		{0, partVSwitchd, "", ""},
		{0, partController, "dead", ""},
		{outageGrace, partPatch, "", "dead"},
		{0, partBridge, "gone", "gone"},
		{0, partController, "", "gone"},
	} {
		now = now.Add(step.after)
		o.note(step.part, step.why, now)
		if got := o.why(now); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	o.forget()
	if got := o.why(now); got != "" {
		t.Errorf("what was broken is remembered: %q", got)
	}
	o.note(partVSwitchd, "dead", now)
	if got := o.why(now); got != "" || !o.seen(partController) {
		t.Errorf("a part that worked before is out at once: %q", got)
	}
	// A new process of an agent whose gateway is in service.
	for first := range 2 { // it sees what is broken before or after it knows its Node
		o = newOutage()
		if first == 0 {
			o.note(partPatch, "no port yet", now)
		}
		o.inService(now)
		o.note(partPatch, "no port yet", now)
		o.inService(now.Add(time.Second))
		if got := o.why(now.Add(outageGrace - 1)); got != "" {
			t.Errorf("a gateway in service is out at once: %q", got)
		}
		if got := o.why(now.Add(outageGrace)); got != "no port yet" {
			t.Errorf("after the grace: %q", got)
		}
	}
	if have := machineRuns(); have <= 0 {
		t.Errorf("this machine has been running for %v", have)
	}
}

// checkOutages breaks what the gateway is made of, and mends it: the cluster is
// told of both.
func (b *bed) checkOutages(t *testing.T) {
	t.Helper()
	b.awaitOut(t, "")
	testkit.Run(t, "sh", "-ec", "kill -9 $(cat /run/ovn/ovn-controller.pid)")
	b.awaitOut(t, "ovn-controller does not answer")
	testkit.StartOVNController(t)
	b.awaitOut(t, "")
	testkit.Run(t, "ip", "link", "set", "eth0peer", "down")
	b.awaitOut(t, "the NIC eth0 of the gateway's external bridge breth0 has no carrier: is it up, "+
		"and its cable plugged in?")
	testkit.Run(t, "ip", "link", "set", "eth0peer", "up")
	b.awaitOut(t, "")
	testkit.Run(t, "ovs-vsctl", "del-port", "breth0", "eth0")
	b.awaitOut(t, "the gateway's external bridge: interface eth0 is not in a bridge: run `ovnkube nics-to-bridge eth0`")
	testkit.Run(t, "ovs-vsctl", "add-port", "breth0", "eth0")
	b.awaitOut(t, "")
	b.awaitFlows(t, 34)
	for _, dest := range slices.Concat(outside, far) {
		testkit.Eventually(t, "the pod reaches "+dest, func() string {
			_, err := testkit.AskOnce("a", "udp", dest)
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// awaitOut waits until the cluster is told that the gateway is out of service
// for a reason, "" for not being so.
func (b *bed) awaitOut(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, "the gateway is out of service: "+want, func() string {
		g, err := annotation.ParseL3Gateway(b.node(t).Annotations[annotation.L3GatewayConfig])
		if err != nil || g == nil || g.Out != want || len(g.IPs) != 2 {
			return fmt.Sprintf("%+v %v", g, err)
		}
		return ""
	})
}
