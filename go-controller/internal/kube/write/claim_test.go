package write

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestClaimBody(t *testing.T) {
	patch := allocate.Patch{UID: "u", Claim: &allocate.ClaimStatus{Pod: "web",
		Condition: cluster.Condition{Type: cluster.TypeIPsAllocated, True: true, Reason: "SuccessfulAllocation"},
		IPs:       []netip.Prefix{netip.MustParsePrefix("10.99.0.7/24"), netip.MustParsePrefix("fd99::7/64")}}}
	const first = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/status","value":null},` +
		`{"op":"add","path":"/status","value":{"conditions":[{"lastTransitionTime":`
	body, err := claimBody(patch)
	if err != nil || !strings.HasPrefix(string(body), first) ||
		!strings.Contains(string(body), `"ips":["10.99.0.7/24","fd99::7/64"],"ownerPod":{"name":"web"}`) {
		t.Errorf("%s, %v", body, err)
	}
	patch.Claim.Found = `{"conditions":[{"type":"Mine","status":"True"},{"type":"IPsAllocated","status":"True",` +
		`"lastTransitionTime":"then"}],"ips":[],"more":1}`
	body, err = claimBody(patch)
	var operations []map[string]any
	if err != nil || json.Unmarshal(body, &operations) != nil || len(operations) != 3 {
		t.Fatalf("%s, %v", body, err)
	}
	text, _ := json.Marshal(operations[2]["value"])
	for _, want := range []string{`"more":1`, `{"status":"True","type":"Mine"}`, `"lastTransitionTime":"then"`,
		`"reason":"SuccessfulAllocation"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: want %s", text, want)
		}
	}
	patch.Claim.Found = `{"ips":["10.99.0.7/24"],"ownerPod":"web"}`
	patch.Claim.Condition = cluster.Condition{
		Type: cluster.TypeIPsAllocated, Reason: "IPAddressConflict", Message: "whose"}
	body, err = claimBody(patch)
	for _, want := range []string{`"message":"whose","reason":"IPAddressConflict","status":"False","type":"IPsAllocated"`,
		`"ips":["10.99.0.7/24"],"ownerPod":"web"}`} {
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s, %v: want %s", body, err, want)
		}
	}
	patch.Claim.Found = "{"
	if _, err := claimBody(patch); err == nil || !strings.Contains(err.Error(), "reading status") {
		t.Errorf("%v, want an error", err)
	}
}
