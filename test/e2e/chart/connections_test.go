package chart

import (
	"fmt"
	"strings"
	"testing"
)

// The masters have the limit of a pod's connections, unless it is 0.
func TestMaxPodConnections(t *testing.T) {
	for value, want := range map[string]bool{"0": false, "20000": true, "4294967295": true} {
		objects, err := render(t, "network.maxPodConnections="+value)
		if err != nil {
			t.Fatal(err)
		}
		args := fmt.Sprint(at(objects["DaemonSet/ovnkube-master"], "spec", "template", "spec", "containers"))
		if !strings.Contains(args, "--cluster-subnets=") || strings.Contains(args, "--max-pod-connections="+value) != want {
			t.Errorf("network.maxPodConnections=%s: the master's flag is there: %t, want %t", value, !want, want)
		}
	}
	if _, err := render(t, "network.maxPodConnections=-1"); err == nil {
		t.Error("a negative limit is not refused")
	}
}
