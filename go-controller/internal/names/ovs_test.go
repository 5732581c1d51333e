package names

import "testing"

// The chassis name of a node is a constant of the on-disk format.
func TestSystemID(t *testing.T) {
	if got, want := SystemID("worker-1.example"), "325a341c-2a79-59f6-a1fb-a226096b5371"; got != want {
		t.Errorf("SystemID is %s, was %s: every node would become another chassis", got, want)
	}
	if SystemID("n1") == SystemID("n2") {
		t.Error("two nodes have one chassis name")
	}
}
