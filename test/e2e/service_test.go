package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// kubectlStatus writes the status of a service, like the controller of a load balancer.
func kubectlStatus(t *testing.T, svc, patch string) {
	t.Helper()
	kubectl(t, "patch", "service", svc, "--subresource=status", "--type=merge", "-p", patch)
}

// explained returns the output of `ovnkube explain svc`.
func explained(t *testing.T, svc string, flags ...string) string {
	t.Helper()
	return inMaster(t, append(append([]string{"explain", "svc", "--log-level=error"}, flags...), "default/"+svc)...)
}

// TestServiceAddresses checks that a service answers on those of its external and load balancer addresses that no other
// service has.
func TestServiceAddresses(t *testing.T) {
	apply(t, deployment("shop", 3)+service("shop", "shop"))
	ps := readyPods(t, "shop", 3)
	kubectl(t, "patch", "service", "shop", "--type=merge", "-p",
		`{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local","externalIPs":["192.0.2.1","2001:db8::1"]}}`)
	kubectlStatus(t, "shop", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2","ipMode":"VIP"},`+
		`{"ip":"2001:db8::2"},{"ip":"192.0.2.3","ipMode":"Proxy"}]}}}`)
	for _, ip := range []string{"192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"} {
		for _, protocol := range machines.Protocols(t) {
			fromPod(t, ps[0]).reaches(t, protocol, hostPort(ip, 80), names(ps))
		}
	}
	// Another service requests the address: it gets an Event, and shop keeps the address.
	apply(t, strings.Replace(service("rival", "nobody"), "spec:\n", "spec:\n  externalIPs: [192.0.2.1]\n", 1))
	eventually(t, "an Event of the rival", func() string {
		out := kubectl(t, "get", "events", "-o",
			"jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{\"\\n\"}{end}")
		if !strings.Contains(out, "rival AddressInUse 192.0.2.1:80/SCTP is of Service default/shop, 192.0.2.1:80/TCP is "+
			"of Service default/shop, 192.0.2.1:80/UDP is of Service default/shop") {
			return out
		}
		return ""
	})
	fromPod(t, ps[1]).reaches(t, "tcp", "192.0.2.1:80", names(ps))
	out := explained(t, "shop")
	for _, want := range []string{"  VIP +192.0.2.1:80 +spec.externalIPs\n", "  no VIP +192.0.2.3:80 .*ipMode is Proxy",
		"Load_Balancer Service_default/shop_TCP  [0-9a-f-]+  as wanted",
		"Load_Balancer Service_default/shop_UDP  [0-9a-f-]+  as wanted", "  in +" +
			regexp.QuoteMeta(hostPort(ps[0].IPs[0], 8080)) + " +ready  \\(pod " + ps[0].Name + ", node " + ps[0].Node + ", "} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("explained:\n%s\nwant %s", out, want)
		}
	}
	if out := explained(t, "rival"); !strings.Contains(out,
		"spec.externalIPs: it belongs to Service default/shop, which is older") {
		t.Errorf("explained:\n%s\nwant who has the address", out)
	}
	var parsed struct{ Rows []struct{ State string } }
	if err := json.Unmarshal([]byte(explained(t, "shop", "-o", "json")), &parsed); err != nil ||
		len(parsed.Rows) != len(machines.Protocols(t)) || parsed.Rows[0].State != "as wanted" {
		t.Errorf("explained as JSON: %+v, %v", parsed, err)
	}
	// When the older service is deleted, the other one gets the address, without a backend.
	kubectl(t, "delete", "service", "shop")
	eventually(t, "the rival has the address", func() string {
		out, err := fromPod(t, ps[0]).run("ask", "tcp", "192.0.2.1:80", "1", "5s")
		if err == nil || !strings.Contains(out+err.Error(), "refused") {
			return "not refused: " + out
		}
		return ""
	})
}

// TestSessionAffinity checks that each client keeps its backend at the cluster IP, in both families and all protocols.
// A client whose backend is deleted keeps another one.
func TestSessionAffinity(t *testing.T) {
	apply(t, deployment("asker", 1)+deployment("sticky", 3)+strings.Replace(service("sticky", "sticky"), "spec:\n",
		"spec:\n  sessionAffinity: ClientIP\n", 1))
	ps, asker := readyPods(t, "sticky", 3), readyPods(t, "asker", 1)[0]
	settled(t, "sticky", ps)
	// makes the nodes resolve each other
	fromPod(t, ps[0]).reaches(t, "tcp", hostPort(ps[1].IPs[0], 8080), []string{ps[1].Name})
	for _, ip := range clusterIPs(t, "sticky") {
		for _, protocol := range machines.Protocols(t) {
			for _, p := range append(ps, asker) {
				eventually(t, fmt.Sprintf("%s to %s %s", p.Name, protocol, ip), func() string {
					return keeps(t, p, protocol, ip, ps)
				})
			}
		}
	}
	answer, err := fromPod(t, asker).run("ask", "tcp", hostPort(clusterIPs(t, "sticky")[0], 80), "1", "2s")
	if err != nil {
		t.Fatal(err)
	}
	backend, _, _ := strings.Cut(answer, " ")
	kubectl(t, "delete", "pod", backend, "--now")
	left := slices.DeleteFunc(readyPods(t, "sticky", 3), func(p pod) bool { return p.Name == backend })
	for _, ip := range clusterIPs(t, "sticky") {
		for _, protocol := range machines.Protocols(t) {
			eventually(t, fmt.Sprintf("%s to %s %s after %s", asker.Name, protocol, ip, backend), func() string {
				return keeps(t, asker, protocol, ip, left)
			})
		}
	}
}

// keeps asks a service 20 times from a pod, and returns an error unless the same backend answers each time. It waits
// until the client's node knows all backends. With three backends chosen at random, that would happen once in a
// billion.
func keeps(t *testing.T, from pod, protocol, ip string, ps []pod) string {
	t.Helper()
	out, err := fromPod(t, from).run("ask", protocol, hostPort(ip, 80), "20", "2s")
	if err != nil {
		return err.Error()
	}
	var who []string
	for line := range strings.Lines(out) {
		w, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		who = append(who, w)
	}
	slices.Sort(who)
	if who = slices.Compact(who); len(who) != 1 || !slices.Contains(names(ps), who[0]) {
		return fmt.Sprintf("%v answered, want always the same", who)
	}
	return ""
}
