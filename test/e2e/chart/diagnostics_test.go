package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// laptopPage is what an operator reads who has only kubectl.
const laptopPage = "../../../docs/operate/kubectl.md"

// diagnostics runs the commands of the page, as an administrator and as users with the page's roles. It asks the
// servers without a good token.
func (c *installed) diagnostics(t *testing.T) {
	o := c.operator(t)
	o.names = strings.NewReplacer("NODE", "n2", "SERVICE", "echo", "POD", c.pods[0], "USER",
		"system:serviceaccount:default:looker")
	pings := c.pings(t)
	machines.MoreReplies(t, pings, 1)
	o.said(t, "kubectl northbound status --wait --timeout 60s", "All is well.")
	o.said(t, "kubectl northbound status | grep -c 'nb [0-9.]* [kM]B, sb [0-9.]* [kM]B$'", "1")
	o.said(t, "kubectl northbound status | grep -c '^node .* tunnels to 2 '", "3")
	for _, heading := range []string{"## Is all well?", "## Why does it do that?", "## Which packets are there?",
		"## The tools of OVN and Open vSwitch"} {
		for _, block := range machines.Blocks(t, laptopPage, heading) {
			o.does(t, block)
		}
	}
	if packets, err := os.ReadFile(filepath.Join(o.dir, "pod.pcap")); err != nil || len(packets) < 10*98 {
		t.Errorf("the file for Wireshark has %d bytes, %v; want ten packets", len(packets), err)
	}
	o.said(t, "kubectl northbound trace p1 p3", `output to "default_p3"`)
	o.said(t, "kubectl northbound trace p1 svc/echo:80", "10.111.200.7")
	o.said(t, "kubectl northbound explain node/n2", "as wanted")
	o.said(t, "kubectl northbound doctor -o json n1 n3 >doctor.json; grep -c '\"check\": \"ovn-controller\"' doctor.json",
		"2")
	o.fails(t, "kubectl northbound appctl n1 ovs-vswitchd ofproto/trace br-int in_port=1 ffffffffffff0a0000000001",
		"want a bridge and a flow")
	o.fails(t, "kubectl northbound doctor n9", `no diagnostics server on node "n9"`)
	o.said(t, "kubectl_complete-northbound doctor n", "n1\nn2\nn3\n:4\n")
	o.said(t, "kubectl_complete-northbound explain svc/e", "svc/echo\n:4\n")
	o.said(t, "kubectl __complete northbound trace p", "p1\np2\np3\n:4\n")
	o.fails(t, "kubectl northbound nbctl ls-add x", `command "ls-add x": want one of show, list`)
	o.fails(t, "kubectl northbound tcpdump nobody", `pods "nobody" not found`)
	t.Run("bundle", func(t *testing.T) { c.bundle(t, o) })
	t.Run("users", func(t *testing.T) { c.users(t, o) })
	t.Run("tokens", c.tokens)
}

// bundle collects everything, while there are passwords in pods and Secrets. The captured objects make the captured
// rows.
func (c *installed) bundle(t *testing.T, o *operator) {
	const password = "hunter2-of-nobody-else"
	o.does(t, fmt.Sprintf(`kubectl create secret generic guarded --from-literal=password=%[1]s
kubectl create configmap guarded --from-literal=password=%[1]s
kubectl run guarded --image=localhost/echo:1 --restart=Never --env=PASSWORD=%[1]s --annotations=vault/token=%[1]s
kubectl wait --for=condition=Ready --timeout=60s pod/guarded`, password))
	for _, block := range machines.Blocks(t, laptopPage, "## Keep the state for later") {
		o.does(t, block)
	}
	o.does(t, "mkdir unpacked; tar xzf incident.tgz -C unpacked")
	for _, file := range []string{"objects.json", "databases/sb.db", "status.json", "plan.txt",
		"nodes/n2/br-int-flows.txt",
		"nodes/n3/doctor.json", "nodes/n1/routes.txt"} {
		if info, err := os.Stat(filepath.Join(o.dir, "unpacked/northbound-bundle", file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want a file that is not empty", file, err)
		}
	}
	o.said(t, "cat unpacked/northbound-bundle/errors.txt", "Everything was collected.")
	o.said(t, `grep '"name": "guarded"' unpacked/northbound-bundle/objects.json`, "guarded")
	// Tokens of ServiceAccounts begin like this, private keys like that.
	for _, secret := range []string{password, "eyJhbGciOi", "PRIVATE KEY"} {
		o.fails(t, "grep -rl '"+secret+"' unpacked", "")
	}
	o.does(t, "kubectl delete --now secret/guarded configmap/guarded pod/guarded")
}

// said runs a command that must succeed and print something.
func (o *operator) said(t *testing.T, command, want string) {
	t.Helper()
	if out, err := o.try(t.Context(), command); err != nil || !strings.Contains(out, want) {
		t.Errorf("$ %s\n%s%v\nwant %s", command, out, err, want)
	}
}

// fails runs a command that must fail and say why.
func (o *operator) fails(t *testing.T, command, want string) {
	t.Helper()
	out, err := o.try(t.Context(), command)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(out, want) {
		t.Errorf("$ %s\n%s%v\nwant a failure with %s", command, out, err, want)
	}
}

// users are asked for what each role lets them do.
func (c *installed) users(t *testing.T, o *operator) {
	o.does(t, "kubectl create serviceaccount looker")
	as := c.kubeconfigOf(t, o, "looker")
	nothing := `cannot list resource "pods"`
	o.fails(t, as+"kubectl northbound status", nothing)
	o.fails(t, as+"kubectl northbound nbctl show", nothing)
	roles := machines.Blocks(t, laptopPage, "## Who may use it")
	o.does(t, roles[0])
	o.does(t, as+"kubectl northbound status")
	o.does(t, as+"kubectl northbound nbctl show")
	o.does(t, as+"kubectl northbound doctor n1")
	o.does(t, "kubectl create role looker --verb=get --resource=pods; "+
		"kubectl create rolebinding looker --role=looker --user=USER")
	o.fails(t, as+"kubectl northbound tcpdump p1 -c 1",
		`cannot create resource "serviceaccounts/token" in API group "" in the namespace "ovn-kubernetes"`)
	o.does(t, roles[1])
	o.does(t, as+"kubectl northbound tcpdump p1 -c 1")
	o.does(t, "kubectl delete clusterrolebinding northbound-viewers; "+
		"kubectl delete serviceaccount,role,rolebinding looker; "+
		"kubectl -n ovn-kubernetes delete rolebinding northbound-viewers northbound-capturers")
}

// kubeconfigOf writes a kubeconfig with a token of a ServiceAccount, and returns the shell's assignment of it.
func (c *installed) kubeconfigOf(t *testing.T, o *operator, account string) string {
	t.Helper()
	var config map[string]any
	raw := machines.Kubectl(t, c.Cluster, "", "config", "view", "--raw", "--output", "json")
	if err := json.Unmarshal([]byte(raw), &config); err != nil {
		t.Fatal(err)
	}
	token := machines.Kubectl(t, c.Cluster, "", "create", "token", account)
	for _, user := range config["users"].([]any) {
		user.(map[string]any)["user"] = map[string]string{"token": strings.TrimSpace(token)}
	}
	changed, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(o.dir, account+".kubeconfig")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return "export KUBECONFIG=" + file + "; "
}

// tokens are sent to a server, on its node. Only one of this server's audience and of the right account is taken.
func (c *installed) tokens(t *testing.T) {
	const doctor, capture = "doctor", "tcpdump"
	nonce := regexp.MustCompile(`"nonce":"(\w+)"`).FindStringSubmatch(c.send(t.Context(), t, "GET", "/v1/server", "", ""))
	if nonce == nil {
		t.Fatal("the server does not say who it is")
	}
	server := func(place, node string) string {
		return "--audience=northbound.io/diagnostics/" + place + "/" + node + "/" + nonce[1]
	}
	for _, k := range []struct {
		name, tool string
		token      []string // of kubectl create token; nil for none
		want       string
	}{
		{"no token", doctor, nil, "401"},
		{"a token for this server", doctor, []string{"northbound-viewer", server("node", "n2")}, "200"},
		{"for another node", doctor, []string{"northbound-viewer", server("node", "n1")}, "401"},
		{"for another start of this server", doctor,
			[]string{"northbound-viewer", "--audience=northbound.io/diagnostics/node/n2/before"}, "401"},
		{"for another place", doctor, []string{"northbound-viewer", server("master", "n2")}, "401"},
		{"for the API server", doctor, []string{"northbound-viewer"}, "401"},
		{"of the agent", doctor, []string{"ovnkube-node", server("node", "n2")}, "403"},
		{"of the other account", capture, []string{"northbound-viewer", server("node", "n2")}, "403"},
	} {
		token := "none"
		if k.token != nil {
			token = c.kubectl(t, append([]string{"create", "token"}, k.token...)...)
		}
		header := ""
		if k.token != nil {
			header = "Authorization: Bearer " + strings.TrimSpace(token) + `\r\n`
		}
		answer := c.send(t.Context(), t, "POST", "/v1/tools/"+k.tool, header, "{}")
		if fields := strings.Fields(answer); len(fields) < 2 || fields[1] != k.want {
			t.Errorf("%s: %q, want status %s", k.name, answer, k.want)
		}
	}
	for _, n := range c.Nodes { // the port is on the loopback address alone
		out, err := c.Nodes[1].Run(t.Context(), "bash", "-c",
			fmt.Sprintf("exec 3<>/dev/tcp/%s/9413 && echo connected", n.Config.Addrs[0].Addr()))
		if err == nil || strings.Contains(out, "connected") {
			t.Errorf("node n2 connects to port 9413 of %s: %q, %v", n.Spec.Name, out, err)
		}
	}
}

// send sends a request to the server of node n2, from a process on that node, and returns the beginning of the answer.
func (c *installed) send(ctx context.Context, t *testing.T, method, path, header, body string) string {
	t.Helper()
	request := fmt.Sprintf(`%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s`,
		method, path, len(body), header, body)
	out, err := c.Nodes[1].Run(ctx, "bash", "-c",
		`exec 3<>/dev/tcp/127.0.0.1/9413 && printf "$1" >&3 && head -c 4096 <&3`, "bash", request)
	if err != nil {
		t.Errorf("asking for %s: %v: %s", path, err, out)
	}
	return out
}
