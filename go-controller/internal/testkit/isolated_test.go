package testkit

import "testing"

func TestComplaints(t *testing.T) {
	out := `=== RUN   TestGateway
time=2026-11-22T16:59:17.273Z level=WARN msg="waiting"
    gateway_test.go:230: ovs-vsctl list-ports: it prints:
        eth0
        patch
time=2026-11-22T16:59:17.273Z level=INFO msg="after"
--- FAIL: TestGateway (40.53s)
panic: what was that?
        a_test.go:1
exit status 2
`
	want := `    gateway_test.go:230: ovs-vsctl list-ports: it prints:
        eth0
        patch
panic: what was that?
        a_test.go:1`
	if have := complaints(out); have != want {
		t.Errorf("the complaints are\n%s\nwant\n%s", have, want)
	}
}
