package remote

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answers are what ovs-vsctl prints on a node about its ports to other chassis, and about their interfaces.
type answers struct {
	ports, interfaces string
	err               error
}

// portTo is the row of a port, as ovs-vsctl prints it in JSON.
func portTo(name, chassis string) string {
	return fmt.Sprintf(`["%s",["map",[["ovn-chassis-id","%s@192.0.2.7"]]]]`, name, chassis)
}

// A node has as many tunnels as there are others with a ready agent; several may lead to one of them.
func TestTunnels(t *testing.T) {
	const opened, refused = `["%s",5,["set",[]]]`, `["%s",-1,"could not open network device"]`
	three := fmt.Sprint(portTo("ovn-b-0", "b"), ",", portTo("ovn-c-0", "c"), ",", portTo("ovn-c-1", "c"))
	both := fmt.Sprintf(opened+","+opened+","+opened, "ovn-b-0", "ovn-c-0", "ovn-c-1")
	said := map[string]answers{
		"n1": {ports: three, interfaces: both},
		"n2": {ports: portTo("ovn-b-0", "b"), interfaces: fmt.Sprintf(opened, "ovn-b-0")},
		"n3": {ports: three, interfaces: fmt.Sprintf(refused+","+opened+","+opened, "ovn-b-0", "ovn-c-0", "ovn-c-1")},
		"n4": {err: errors.New("no answer")},
	}
	ask := func(_ context.Context, node string, args ...string) (string, error) {
		a := said[node]
		rows := a.ports
		if slices.Contains(args, "interface") {
			rows = a.interfaces
		}
		return `{"data":[` + rows + `],"headings":[]}`, a.err
	}
	var all []Component
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		all = append(all, Component{Name: "node", Node: node, Ready: node != "n4"})
	}
	all = append(all, Component{Name: "master", Node: "n1", Ready: true}, Component{Name: "node"})
	if err := judgeTunnels(t.Context(), all, ask); err != nil {
		t.Fatal(err)
	}
	const doctor = "kubectl northbound doctor "
	for i, want := range []Component{
		{Name: "node", Node: "n1", Ready: true, Role: "tunnels to 2"},
		{Name: "node", Node: "n2", Role: "tunnels to 1", Problem: "tunnels to 1 of 2 other nodes", Try: doctor + "n2"},
		{Name: "node", Node: "n3", Role: "tunnels to 1", Try: doctor + "n3",
			Problem: "tunnels to 1 of 2 other nodes: could not open network device"},
		{Name: "node", Node: "n4"}, // its agent is not ready: it is not asked, and not counted
	} {
		if got := all[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	asked := []Component{{Name: "node", Node: "n1", Ready: true}, {Name: "node", Node: "n4", Ready: true}}
	if err := judgeTunnels(t.Context(), asked, ask); err != nil || asked[1].Ready ||
		asked[1].Problem != "asking for its tunnels: no answer" || !asked[0].Ready {
		t.Errorf("a node without an answer: %+v, %v", asked, err)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "northbound-viewer", nil)
	said["n4"] = answers{err: fmt.Errorf("creating a token: %w", forbidden)}
	asked[1] = Component{Name: "node", Node: "n4", Ready: true}
	if err := judgeTunnels(t.Context(), asked, ask); !Forbidden(err) || !asked[1].Ready {
		t.Errorf("a user who may not ask: %+v, %v", asked, err)
	}
	alone := []Component{{Name: "node", Node: "n4", Ready: true}}
	if err := judgeTunnels(t.Context(), alone, ask); err != nil || !alone[0].Ready {
		t.Errorf("a node alone is asked: %+v, %v", alone, err)
	}
}
