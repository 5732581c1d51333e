package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRepair breaks rows by hand, and checks that they are repaired and counted.
func TestRepair(t *testing.T) {
	apply(t, deployment("fix", 1)+service("fix", "fix"))
	p := readyPods(t, "fix", 1)[0]
	settled(t, "fix", []pod{p})
	port := "default_" + p.Name
	addresses := nbctl(t, "lsp-get-addresses", port)
	count := func(table, condition string) func() string {
		return func() string {
			return fmt.Sprint(len(strings.Fields(nbctl(t, "--bare", "--columns=_uuid", "find", table, condition))))
		}
	}
	routes := count("Logical_Router_Static_Route", "policy=src-ip")
	for _, c := range []struct {
		break_ []string
		look   func() string
	}{
		{[]string{"lsp-del", port}, count("Logical_Switch_Port", "name="+port)},
		{[]string{"lb-del", "Service_default/fix_TCP"}, count("Load_Balancer", "name=Service_default/fix_TCP")},
		{[]string{"lr-route-del", "ovn_cluster_router"}, routes},
		{[]string{"lsp-set-addresses", port, "0a:00:00:00:00:01 10.1.2.3"}, func() string {
			return nbctl(t, "lsp-get-addresses", port)
		}},
	} {
		want := c.look()
		if want == "0" {
			t.Fatalf("nothing to break with %v", c.break_)
		}
		before := metric(t, "northbound_nb_repairs_total")
		nbctl(t, c.break_...)
		eventually(t, "repair after "+strings.Join(c.break_, " "), func() string {
			if got := c.look(); got != want {
				return fmt.Sprintf("%q, want %q", got, want)
			}
			return ""
		})
		eventually(t, "count of repairs after "+strings.Join(c.break_, " "), func() string {
			if after := metric(t, "northbound_nb_repairs_total"); after <= before {
				return fmt.Sprintf("still %v", after)
			}
			return ""
		})
	}
	if got := nbctl(t, "lsp-get-addresses", port); got != addresses {
		t.Errorf("addresses %q, want %q", got, addresses)
	}
	fromPod(t, p).reaches(t, "tcp", hostPort(clusterIPs(t, "fix")[0], 80), []string{p.Name})
	log := must(t, "logs", "master")
	if !strings.Contains(log, "msg=repaired") || !strings.Contains(log, port) {
		t.Error("the master's log does not say what was repaired")
	}
}

// TestForeignRows checks that rows of other owners do not change.
func TestForeignRows(t *testing.T) {
	nbctl(t, "ls-add", "theirs", "--", "lsp-add", "theirs", "their-port", "--", "lb-add", "their-lb", "192.0.2.1:80",
		"192.0.2.2:80")
	t.Cleanup(func() { // the test's context has ended
		if out, err := sandbox(context.Background(), "nbctl", "ls-del", "theirs", "--", "lb-del", "their-lb"); err != nil {
			t.Errorf("deleting the test's rows: %v\n%s", err, out)
		}
	})
	apply(t, deployment("foreign", 1))
	readyPods(t, "foreign", 1)
	must(t, "restart", "master")
	inSync(t)
	for _, c := range [][]string{{"Logical_Switch", "theirs"}, {"Logical_Switch_Port", "their-port"},
		{"Load_Balancer", "their-lb"}} {
		if got := nbctl(t, "--bare", "--columns=name", "find", c[0], "name="+c[1]); got != c[1] {
			t.Errorf("%s %s: %q", c[0], c[1], got)
		}
	}
}

// TestRestartWritesNothing checks that a restart on an unchanged cluster writes no row and no annotation.
func TestRestartWritesNothing(t *testing.T) {
	apply(t, deployment("still", 3)+service("still", "still"))
	settled(t, "still", readyPods(t, "still", 3))
	eventually(t, "the pods of the tests before", func() string {
		return kubectl(t, "get", "pods", "-l", "app!=still", "-o", "name")
	})
	eventually(t, "their ports", func() string { return portsBut(t, "default_still-") })
	eventually(t, "load balancers of services that are gone", func() string { return orphans(t) })
	eventually(t, "namespaces of the tests before, or their rows", func() string { return leaving(t) })
	must(t, "restart", "master")
	inSync(t)
	for _, m := range []string{"northbound_nb_operations_total", "northbound_nb_rows_written_total",
		"northbound_k8s_patches_total", "northbound_verify_differences_total"} {
		if got := metric(t, m); got != 0 {
			t.Errorf("%s is %v after a restart, want 0", m, got)
		}
	}
	if got := metric(t, "northbound_full_passes_total"); got < 1 {
		t.Errorf("full passes: %v, want one at least: else nothing was compared", got)
	}
}

// orphans lists the services' load balancers in the Northbound database whose services do not exist.
func orphans(t *testing.T) string {
	t.Helper()
	services := strings.Fields(kubectl(t, "get", "services", "--all-namespaces", "-o",
		`jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}`))
	all := strings.Fields(nbctl(t, "--bare", "--columns=name", "list", "Load_Balancer"))
	return strings.Join(slices.DeleteFunc(all, func(name string) bool {
		name, ours := strings.CutPrefix(name, "Service_")
		return !ours || slices.ContainsFunc(services, func(s string) bool { return strings.HasPrefix(name, s+"_") })
	}), " ")
}

// leaving lists the namespaces with address sets that are being deleted, or are gone.
func leaving(t *testing.T) string {
	t.Helper()
	stay := strings.Fields(kubectl(t, "get", "namespaces", "--field-selector", "status.phase=Active", "-o",
		`jsonpath={.items[*].metadata.name}`))
	var out []string
	for _, id := range strings.Fields(nbctl(t, "--bare", "--columns=external_ids", "find", "Address_Set",
		`external_ids:"k8s.ovn.org/owner-type"=Namespace`)) {
		name, ok := strings.CutPrefix(id, "k8s.ovn.org/owner-name=")
		if ok && !slices.Contains(stay, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// portsBut lists the pods' ports in the Northbound database, except those whose names have the prefix.
func portsBut(t *testing.T, prefix string) string {
	t.Helper()
	ports := strings.Fields(nbctl(t, "--bare", "--columns=name", "find", "Logical_Switch_Port", "external_ids:pod=true"))
	return strings.Join(slices.DeleteFunc(ports, func(p string) bool {
		return prefix != "" && strings.HasPrefix(p, prefix)
	}), " ")
}

// inSync waits until the master reports that its database is in sync.
func inSync(t *testing.T) {
	t.Helper()
	eventually(t, "the master in sync", func() string {
		out, err := sandbox(t.Context(), "metrics")
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(out, "northbound_in_sync 1") {
			return "not yet"
		}
		return ""
	})
}
