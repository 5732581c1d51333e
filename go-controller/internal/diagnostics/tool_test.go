package diagnostics

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Each tool takes what it is for.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		place     Place
		tool      string
		arguments string
		want      string
	}{
		{Node, "doctor", "-o json", "ovnkube doctor -o json"},
		{Node, "vsctl", "show", "ovs-vsctl --timeout=10 --dry-run show"},
		{Node, "vsctl", "--columns=name,ofport find Interface type=geneve",
			"ovs-vsctl --timeout=10 --dry-run --columns=name,ofport find Interface type=geneve"},
		{Node, "ofctl", "-O OpenFlow15 dump-flows br-int table=8,ip",
			"ovs-ofctl --timeout=30 -O OpenFlow15 dump-flows br-int table=8,ip"},
		{Node, "appctl", "ovn-controller connection-status",
			"ovn-appctl --timeout=30 -t ovn-controller connection-status"},
		{Node, "tcpdump", "shop/web-1 src host 192.0.2.1 and dst port 80 or ether host 0a:58:00:00:00:01",
			"ovnkube tcpdump shop/web-1 src host 192.0.2.1 and dst port 80 or ether host 0a:58:00:00:00:01"},
		{Node, "tcpdump", "shop/web-1 net 10.244 or vlan 3", "ovnkube tcpdump shop/web-1 net 10.244 or vlan 3"},
		{Node, "appctl", "ovs-vswitchd ofproto/trace br-int in_port=1 --names",
			"ovs-appctl --timeout=30 -t ovs-vswitchd ofproto/trace br-int in_port=1 --names"},
		{Node, "ip", "-6 route get fd00::1", "ip -6 route get fd00::1"},
		{Node, "ip", "route show table all", "ip route show table all"},
		{Node, "ip", "-d address show", "ip -d address show"},
		{Node, "tcpdump", "shop/web-1 -n (host 192.0.2.1 or net 10.0.0.0/8) and not ip6 host fd00::1",
			"ovnkube tcpdump shop/web-1 -n (host 192.0.2.1 or net 10.0.0.0/8) and not ip6 host fd00::1"},
		{Node, "tcpdump", "shop/web-1 -l -c 3 -w - tcp port 80", "ovnkube tcpdump shop/web-1 -l -c 3 -w - tcp port 80"},
		{Master, "explain", "svc/web -n shop", "ovnkube explain svc/web -n shop"},
		{Master, "explain", "--row=04541828-70be-5a0f-a0e0-3a33dd807c8a -o json",
			"ovnkube explain --row=04541828-70be-5a0f-a0e0-3a33dd807c8a -o json"},
		{Master, "policy", "check shop/a svc/shop/b:80", "ovnkube policy check shop/a svc/shop/b:80"},
		{Database, "nbctl", "--bare list Logical_Switch", "ovn-nbctl --timeout=30 --no-leader-only --dry-run " +
			"--db=unix:/run/ovn/ovnnb_db.sock --bare list Logical_Switch"},
		{Database, "database", "sb cluster/status OVN_Southbound",
			"ovs-appctl --timeout=30 -t /run/ovn/ovnsb_db.ctl cluster/status OVN_Southbound"},
		{Database, "disk", "space", "df --human-readable /var/lib/ovn"},
	} {
		got, err := Find(c.place, c.tool).Command(strings.Fields(c.arguments))
		if strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%s %s: %q, %v; want %q", c.tool, c.arguments, got, err, c.want)
		}
	}
}

// What could write, connect elsewhere or read a file is refused, and the error says what would be right.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		place     Place
		tool      string
		arguments []string
		want      string
	}{
		{Node, "doctor", []string{"--sb-address=tcp:192.0.2.1:6642"}, `option "--sb-address": want one of -o VALUE`},
		{Node, "doctor", []string{"--kubeconfig=/etc/kubernetes/admin.conf"}, "--kubeconfig"},
		{Node, "vsctl", []string{"del-br", "br-int"}, `command "del-br br-int": want one of show, list`},
		{Node, "vsctl", []string{"show", "--", "del-br", "br-int"}, `option "--"`},
		{Node, "vsctl", []string{"--db=tcp:192.0.2.1:6640", "show"}, `option "--db"`},
		{Node, "vsctl", []string{"--log-file=/etc/passwd", "show"}, `option "--log-file"`},
		{Node, "vsctl", []string{"--data", "show", "del-br"}, `option "--data": want --data=VALUE`},
		{Node, "vsctl", []string{"-f", "--log-file=/x", "show"}, `option -f: value "--log-file=/x" is not allowed`},
		{Node, "vsctl", []string{"--format=csv", "list", "Interface"}, `option --format: value "csv" is not allowed`},
		{Node, "vsctl", []string{"get", "Interface", "ipsec0", "options:psk"}, "it is a secret"},
		{Node, "vsctl", []string{"find", "Interface", "options:psk=guess"}, "it is a secret"},
		{Node, "vsctl", []string{"get", "Open_vSwitch", ".", "external_ids:k8s-api-token"}, "it is a secret"},
		{Node, "vsctl", []string{"-f"}, "option -f: the value is missing"},
		{Node, "vsctl", []string{"-fjson", "show"}, `option "-fjson"`},
		{Node, "vsctl", []string{"--bare=1", "show"}, "option --bare: it has no value"},
		{Node, "vsctl", []string{"--col=name", "list", "Port"}, `option "--col"`},
		{Node, "vsctl", nil, `command "": want one of`},
		{Database, "disk", []string{"files", "/etc/shadow"}, `disk: "/etc/shadow": want nothing more`},
		{Database, "disk", nil, `argument "": want one of files, space`},
		{Node, "ofctl", []string{"dump-flows", "tcp:192.0.2.1:6633"}, `"tcp:192.0.2.1:6633": want a name`},
		{Node, "ofctl", []string{"dump-flows", "/tmp/socket"}, `"/tmp/socket": want a name`},
		{Node, "ofctl", []string{"add-flow", "br-int", "drop"}, `command "add-flow br-int"`},
		{Node, "appctl", []string{"ovs-vswitchd", "exit"}, `command "exit"`},
		{Node, "appctl", []string{"ovs-vswitchd", "ofproto/trace", "br-int", "in_port=1", "-generate"}, `option "-generate"`},
		{Node, "appctl", []string{"/run/other.ctl", "version"}, `argument "/run/other.ctl": want one of ovn-controller, ovs`},
		{Node, "appctl", []string{"ovs-vswitchd", "ofproto/trace", "br-int", "in_port=1", "ffffffffffff0a0000000001080045"},
			"want a bridge and a flow"},
		{Node, "appctl", []string{"ovs-vswitchd", "ofproto/trace", "in_port(1)", "ffffffffffff0a0000000001080045"},
			"want a bridge and a flow"},
		{Node, "appctl", []string{"ovs-vswitchd", "ofproto/trace", "br-int", "ffffffffffff0a0000000001080045"},
			"want a bridge and a flow"},
		{Node, "ofctl", []string{"show", "db.sock"}, `bridge "db.sock": want a name`},
		{Node, "ofctl", []string{"dump-flows"}, `bridge "": want a name`},
		{Node, "ip", []string{"link", "show", "sit0"}, "want nothing behind it"},
		{Node, "ip", []string{"link", "show", "dev", "sit0"}, "want nothing behind it"},
		{Node, "ip", []string{"route", "show", "dev", "sit0"}, "want nothing behind it"},
		{Node, "ip", []string{"route", "get", "fd00::1", "oif", "sit0"}, "want one address"},
		{Node, "ip", []string{"route", "get", "example.org"}, "want one address"},
		{Node, "tcpdump", []string{"shop/web", "host", "x.example.org"}, `"x.example.org": want an address`},
		{Node, "tcpdump", []string{"shop/web", "not", "(host", "x.example.org)"}, "want an address"},
		{Node, "tcpdump", []string{"shop/web", "host", "somebody"}, `"somebody": want an address`},
		{Node, "tcpdump", []string{"shop/web", "tcp and src somebody"}, `"somebody": want an address`},
		{Node, "tcpdump", []string{"-n"}, "the pod is missing"},
		{Node, "ip", []string{"link", "set", "br-int", "down"}, `command "link set"`},
		{Node, "ip", []string{"netns", "exec", "x", "sh"}, `command "netns exec"`},
		{Node, "ip", []string{"-batch", "/etc/shadow"}, `option "-batch"`},
		{Node, "tcpdump", []string{"shop/web", "-w", "/etc/cron.d/x"},
			`option -w: value "/etc/cron.d/x" is not allowed: want -w -`},
		{Node, "tcpdump", []string{"shop/web", "-z", "/bin/sh"}, `option "-z"`},
		{Node, "tcpdump", []string{"shop/web", "-r", "/etc/shadow"}, `option "-r"`},
		{Node, "tcpdump", []string{"shop/web", "-F", "/etc/shadow"}, `option "-F"`},
		{Master, "explain", []string{"svc/web", "-f", "/var/run/secrets/token"}, `option "-f"`},
		{Master, "explain", []string{"svc/web", "--nb-address=tcp:192.0.2.1:6641"}, `option "--nb-address"`},
		{Master, "tenant", []string{"join", "a", "b"}, `command "join a": want one of list`},
		{Master, "policy", []string{"diff", "-f", "x"}, `option "-f"`},
		{Database, "nbctl", []string{"set", "NB_Global", "."}, `command "set NB_Global"`},
		{Database, "nbctl", []string{"show", "--", "ls-add", "x"}, `option "--"`},
		{Database, "sbctl", []string{"--db=unix:/run/ovn/ovnnb_db.sock", "show"}, `option "--db"`},
		{Database, "trace", []string{"--ovs", "n1", "ip"}, `option "--ovs"`},
		{Database, "database", []string{"nb", "cluster/leave", "OVN_Northbound"}, `command "cluster/leave OVN_Northbound"`},
		{Database, "database", []string{"nb", "ovsdb-server/add-db", "/x"}, `command "ovsdb-server/add-db /x"`},
	} {
		got, err := Find(c.place, c.tool).Command(c.arguments)
		if err == nil || !strings.Contains(err.Error(), c.tool+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %q, %v; want an error with %s", c.tool, c.arguments, got, err, c.want)
		}
	}
}

// Names are unique at a place, and every tool says what it is for and who may use it.
func TestTools(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range Tools() {
		if key := string(x.Place) + x.Name; seen[key] {
			t.Errorf("two tools %s at %s", x.Name, x.Place)
		} else {
			seen[key] = true
		}
		if x.Usage == "" || x.Account == "" || x.Program == nil && x.Targets == nil || x.Place.Port() == 0 ||
			x.Place.App() == "" {
			t.Errorf("incomplete: %+v", x)
		}
		for _, o := range x.Options {
			if i := slices.IndexFunc(x.Options, func(p Option) bool { return p.Name == o.Name }); x.Options[i] != o {
				t.Errorf("tool %s has option %s twice", x.Name, o.Name)
			}
		}
	}
	if Find(Node, "nbctl") != nil {
		t.Error("nbctl was found on nodes")
	}
}

// FuzzCommand: no arguments make the check panic, and no option passes that is not in the list.
func FuzzCommand(f *testing.F) {
	f.Add("vsctl", "show -- del-br br-int")
	f.Add("appctl", "ovs-vswitchd fdb/show br-int")
	f.Add("tcpdump", "a/b -w - -c 1")
	f.Fuzz(func(t *testing.T, name, line string) {
		for _, p := range Places() {
			tool := Find(p, name)
			if tool == nil {
				continue
			}
			args := strings.Split(line, " ")
			command, err := tool.Command(args)
			if err != nil {
				continue
			}
			for _, word := range command[len(command)-min(len(args), len(command)):] {
				option, _, _ := strings.Cut(word, "=")
				known := slices.ContainsFunc(tool.Options, func(o Option) bool { return o.Name == option || o.Only == word })
				if strings.HasPrefix(word, "-") && !known && slices.Contains(args, word) {
					t.Errorf("%s %q: %q passed", name, args, word)
				}
			}
		}
	})
}

// Output is copied as it comes, and an answer that ends early is an error.
func TestCopy(t *testing.T) {
	var stdout, stderr bytes.Buffer
	whole := `{"stdout":"b3V0"}` + "\n" + `{"stderr":"ZXJy"}` + "\n" + `{"stdout":"IQ=="}` + "\n" + `{"exit":3}` + "\n"
	exit, err := Copy(strings.NewReader(whole), &stdout, &stderr)
	if exit != 3 || err != nil || stdout.String() != "out!" || stderr.String() != "err" {
		t.Errorf("exit %d, %v, %q, %q", exit, err, &stdout, &stderr)
	}
	cut, _, _ := strings.Cut(whole, `{"exit"`)
	if _, err := Copy(strings.NewReader(cut), &stdout, &stderr); !errors.Is(err, ErrCut) {
		t.Errorf("an answer that was cut: %v", err)
	}
	if _, err := Copy(strings.NewReader("<html>\n"), &stdout, &stderr); err == nil {
		t.Error("an answer that is no frame was copied")
	}
	if _, err := Copy(strings.NewReader(cut+`{"stdo`), &stdout, &stderr); !errors.Is(err, ErrCut) {
		t.Errorf("an answer that was cut within a frame: %v", err)
	}
	long := `{"stdout":"` + strings.Repeat("A", maxFrame) + `"}`
	if _, err := Copy(strings.NewReader(long), &stdout, &stderr); !errors.Is(err, ErrCut) {
		t.Errorf("a frame without end: %v", err)
	}
}
