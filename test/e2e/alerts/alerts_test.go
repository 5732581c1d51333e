package alerts

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/node"
)

// TestAlerts breaks one part of a cluster after another. Each time the alerts fire that name the fault, and end when it
// is over.
func TestAlerts(t *testing.T) {
	c := machines.UpWith(t, sandbox.Options{Name: "alerts", Gateways: 1, Install: sandbox.InstallChart,
		Monitoring: true, MasterArgs: []string{"--ovn-latency-interval", "10s"}})
	token := secret(t, c)
	t.Run("who may read", func(t *testing.T) { mayRead(t, c, token) })
	p := start(t, c, token)
	p.quiet(t, "before anything is broken")
	for _, fault := range []struct {
		name string
		make func(*testing.T)
	}{{"many nodes", p.manyNodes}, {"large file", p.largeFile}, {"loop", p.loop}, {"slow database", p.slowDatabase},
		{"repairs", p.repairs}, {"pods fail", p.podsFail}, {"certificate", p.certificate},
		{"databases and daemons", p.stopDaemons}, {"master", p.stopMaster}} {
		p.mark(fault.name)
		if !t.Run(fault.name, fault.make) {
			return
		}
	}
	t.Run("dashboard", p.dashboard)
}

func kubectl(t *testing.T, c *sandbox.Cluster, stdin string, args ...string) string {
	t.Helper()
	return machines.Kubectl(t, c, stdin, append([]string{"--namespace", sandbox.Namespace}, args...)...)
}

// secret is the token that the chart has made for Prometheus.
func secret(t *testing.T, c *sandbox.Cluster) string {
	t.Helper()
	text := kubectl(t, c, "", "get", "secret", "northbound-metrics", "--output", "jsonpath={.data.token}")
	token, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(token) == 0 {
		t.Fatalf("the Secret has the token %q: %v", text, err)
	}
	return string(token)
}

// mayRead asks for the metrics of each daemon from the network, as Prometheus and as others.
func mayRead(t *testing.T, c *sandbox.Cluster, token string) {
	other := kubectl(t, c, "", "create", "token", "default")
	client := &http.Client{Transport: &http.Transport{DialContext: c.Control.Dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, target := range Targets(c) {
		for who, try := range map[string]struct {
			token string
			want  int
		}{
			"nobody": {"", http.StatusUnauthorized}, "a forger": {"forged", http.StatusUnauthorized},
			"another account": {other, http.StatusForbidden}, "Prometheus": {token, http.StatusOK},
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+target+"/metrics", nil)
			if err != nil {
				t.Fatal(err)
			}
			if try.token != "" {
				request.Header.Set("Authorization", "Bearer "+try.token)
			}
			answer, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != try.want {
				t.Errorf("%s at %s: %s, want %d", who, target, answer.Status, try.want)
			}
		}
	}
}

// Processes of the chart's pods, as the beginnings of their arguments, for grep.
const (
	master     = `^(\S*/)?ovnkube\x00master\x00`
	agent      = `^(\S*/)?ovnkube\x00node\x00`
	northd     = `^(\S*/)?ovn-northd\x00`
	controller = `^(\S*/)?ovn-controller\x00`
	nbServer   = `^(\S*/)?ovsdb-server\x00[^\n]*ovnnb_db`
	sbServer   = `^(\S*/)?ovsdb-server\x00[^\n]*ovnsb_db`
)

// signal sends a signal to a process on a node.
func signal(t *testing.T, n *node.Node, name, process string) {
	t.Helper()
	script := `pids=$(grep -lsaP "$1" /proc/[0-9]*/cmdline | cut -d/ -f3); [ -n "$pids" ] && kill -s "$2" $pids`
	machines.Run(t, n, "sh", "-c", script, "sh", process, name)
}

// stopDaemons stops the databases, ovn-northd, an ovn-controller and an agent, and has them go on.
func (p *prometheus) stopDaemons(t *testing.T) {
	n1, n2 := p.Nodes[0], p.Nodes[1] // n1 is the only gateway
	stopped := []struct {
		node    *node.Node
		process string
	}{{n1, nbServer}, {n1, sbServer}, {n1, northd}, {n1, controller}, {n2, agent}}
	for _, s := range stopped {
		signal(t, s.node, "STOP", s.process)
	}
	p.fires(t, "while daemons are stopped", "NorthboundDatabaseNoLeader", "NorthboundDatabaseServerDown",
		"NorthboundNorthdInactive", "NorthboundNotInSync", "NorthboundControllerDisconnected", "NorthboundNodeNotReady",
		"NorthboundGatewayOutOfService", "NorthboundNoGateway", "NorthboundDaemonDown")
	for _, s := range stopped {
		signal(t, s.node, "CONT", s.process)
	}
	p.quiet(t, "when the daemons go on")
}

// stopMaster stops the master, and starts it again in a cluster in which it finds trouble: it lacks rights, there are
// rows of nobody, the name of a port is taken, and a node has more pods than addresses.
func (p *prometheus) stopMaster(t *testing.T) {
	signal(t, p.Nodes[0], "STOP", master)
	p.fires(t, "while the master is stopped", "NorthboundNoLeader")
	p.trouble(t)
	const right, none = "  - networkpolicies\n", "  - none\n"
	role := machines.Kubectl(t, p.Cluster, "", "get", "clusterrole", "ovnkube-master", "--output", "yaml") + "\n"
	role = regexp.MustCompile(`(?m)^  resourceVersion: .*\n`).ReplaceAllString(role, "")
	if !strings.Contains(role, right) {
		t.Fatalf("the master's role has no line %q:\n%s", right, role)
	}
	replace := []string{"replace", "--filename", "-"}
	machines.Kubectl(t, p.Cluster, strings.Replace(role, right, none, 1), replace...)
	signal(t, p.Nodes[0], "KILL", master)
	p.fires(t, "while the master lacks a right", "NorthboundKindsRefused")
	machines.Kubectl(t, p.Cluster, role, replace...)
	p.fires(t, "in trouble", "NorthboundRowsHeldBack", "NorthboundOwnersFailing", "NorthboundTransactionsFail",
		"NorthboundNodeAddressesNearlyFull")
}

// trouble makes what the next master will find.
func (p *prometheus) trouble(t *testing.T) {
	const ghosts = 245 // a node has 251 addresses for pods
	rows := []string{"exec", "daemonset/ovn-db", "--container", "nb", "--", "ovn-nbctl", "ls-add", "theirs",
		"--", "lsp-add", "theirs", "default_refused"}
	for i := range 150 {
		rows = append(rows, "--", "create", "Address_Set", fmt.Sprintf("name=gone%d", i),
			`external_ids:"k8s.ovn.org/owner-type"=Namespace`, `external_ids:"k8s.ovn.org/role"=pods`,
			fmt.Sprintf(`external_ids:"k8s.ovn.org/owner-name"=gone%d`, i))
	}
	kubectl(t, p.Cluster, "", rows...)
	var manifest strings.Builder
	manifest.WriteString("apiVersion: v1\nkind: Node\nmetadata: {name: ghost}\n")
	for i := range ghosts {
		name := fmt.Sprint("ghost-", i)
		if i == 0 {
			name = "refused"
		}
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"+
			"spec: {nodeName: ghost, containers: [{name: c, image: none}]}\n", name)
	}
	machines.Kubectl(t, p.Cluster, manifest.String(), "create", "--filename", "-")
}
