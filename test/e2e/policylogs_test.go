package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// loggedPods is a namespace with a server, a client that a policy lets in, and another pod.
func loggedPods() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: logged}\n---\n")
	for name, node := range map[string]string{"server": "n1", "client": "n2", "other": "n2"} {
		fmt.Fprintf(&b, `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: logged, labels: {app: %[1]s}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: %[3]s, imagePullPolicy: IfNotPresent}]
---
`, name, node, image)
	}
	return b.String() + `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: server, namespace: logged}
spec:
  podSelector: {matchLabels: {app: server}}
  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]
`
}

// aclLines lists the lines of TCP that the server's node has logged with an ACL's name.
func aclLines(t *testing.T, acl string) (out []string) {
	t.Helper()
	for line := range strings.Lines(must(t, "logs", "n1/ovn-controller")) {
		if strings.Contains(line, `name="`+acl+`"`) && strings.Contains(line, ": tcp") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// deniedTo is how many packets to pods ACLs have dropped, as a node's agent counts them: 0 before it has looked.
func deniedTo(t *testing.T, node string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^northbound_acl_drops_total\{direction="ingress"\} (\S+)$`).
		FindStringSubmatch(must(t, "metrics", node))
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// clients is the connections that lines are about: their protocols and clients' ports.
func clients(lines []string) map[string]bool {
	out := map[string]bool{}
	for _, line := range lines {
		out[strings.Join(regexp.MustCompile(`: tcp6?|tp_src=\d+`).FindAllString(line, -1), " ")] = true
	}
	return out
}

// TestPolicyLogs checks that a connection that a policy allows is one line of ovn-controller's log, that what no rule
// allows is logged and counted, and that `ovnkube explain --acl` understands the lines. Without the annotation nothing
// is logged. Neither beginning nor ending it costs a packet of a connection.
func TestPolicyLogs(t *testing.T) {
	const key, allowed, denied = "k8s.ovn.org/acl-logging", "NP:logged/server:ingress:0", "NP:logged/server:ingress:deny"
	const connections = 3
	apply(t, loggedPods())
	kubectl(t, "wait", "-n", "logged", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	ips := strings.Fields(kubectl(t, "get", "pod", "-n", "logged", "server", "-o", "jsonpath={.status.podIPs[*].ip}"))
	var streams []*machines.Stream
	for _, ip := range ips {
		streams = append(streams, machines.StartStream(t, "client to "+ip, func(ctx context.Context) *exec.Cmd {
			return command(ctx, "exec", "logged/client", "--", "ping", "-i", "0.02", ip)
		}))
	}
	machines.MoreReplies(t, streams, 20)
	ask := func(pod, ip string, count int) (string, error) {
		return sandbox(t.Context(), "exec", "logged/"+pod, "--", "/bin/echo-server", "ask", "tcp", hostPort(ip, 8080),
			fmt.Sprint(count), "1s")
	}
	refused := func(ip string) {
		t.Helper()
		if out, err := ask("other", ip, 1); err == nil {
			t.Fatalf("the other pod reached %s: %s", ip, out)
		}
	}
	allow := func(ip string) {
		t.Helper()
		if out, err := ask("client", ip, connections); err != nil {
			t.Fatalf("the client did not reach %s: %v\n%s", ip, err, out)
		}
	}
	for _, ip := range ips {
		allow(ip)
		refused(ip)
	}
	if got := append(aclLines(t, allowed), aclLines(t, denied)...); len(got) > 0 {
		t.Errorf("logged without the annotation: %q", got)
	}
	kubectl(t, "annotate", "namespace", "logged", key+`={"allow": "info", "deny": "alert"}`)
	eventually(t, "denied packets are logged", func() string {
		refused(ips[0])
		if len(aclLines(t, denied)) == 0 {
			return "no line yet"
		}
		return ""
	})
	refused(ips[1])
	for _, ip := range ips {
		allow(ip)
	}
	eventually(t, "a line for each connection", func() string {
		if n := len(clients(aclLines(t, allowed))); n != connections*len(ips) {
			return fmt.Sprintf("lines of %d connections, want %d", n, connections*len(ips))
		}
		return ""
	})
	for _, line := range aclLines(t, allowed) { // a first packet that is sent again is logged again
		if !strings.HasSuffix(line, "tcp_flags=syn") {
			t.Errorf("a packet that begins no connection: %s", line)
		}
	}
	explainedLines(t, allowed, denied)
	before := deniedTo(t, "n1")
	const denials = 5
	for range denials {
		refused(ips[0])
	}
	eventually(t, "n1's agent counts what is denied", func() string {
		if after := deniedTo(t, "n1"); after < before+denials {
			return fmt.Sprintf("%v denied packets after %v, want %d more at least", after, before, denials)
		}
		return ""
	})

	kubectl(t, "annotate", "namespace", "logged", key+"-")
	silent := 0 // probes in a row; a line may be late
	eventually(t, "nothing is logged any more", func() string {
		before := len(aclLines(t, denied))
		refused(ips[0])
		if after := len(aclLines(t, denied)); after > before {
			silent = 0
			return fmt.Sprintf("%d new lines", after-before)
		}
		if silent++; silent < 3 {
			return fmt.Sprintf("%d probes without a line, want 3", silent)
		}
		return ""
	})
	machines.MoreReplies(t, streams, 20)
	machines.NoGaps(t, streams)
}

// explainedLines gives a line of each ACL to the command.
func explainedLines(t *testing.T, allowed, denied string) {
	t.Helper()
	for acl, want := range map[string]string{
		allowed: "np/logged/server spec.ingress[0]\n",
		denied:  "np/logged/server isolates the pod for Ingress, and no rule of any policy allows this\n",
	} {
		out := inMaster(t, "explain", "--log-level=error", "--acl", aclLines(t, acl)[0])
		for _, w := range []string{want, " -> pod/logged/server (", ": as wanted"} {
			if !strings.Contains(out, w) {
				t.Errorf("the explanation of %s lacks %q:\n%s", acl, w, out)
			}
		}
	}
}
