package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// read parses a command line, and returns its context and the warnings that were printed.
func read(t *testing.T, flags []cli.Flag, args ...string) (c *cli.Context, warnings string, err error) {
	t.Helper()
	var stderr bytes.Buffer
	app := newApp()
	app.ErrWriter = &stderr
	app.Commands = []*cli.Command{{Name: "x", Flags: flags, Before: withSettings(noArguments),
		Action: func(ctx *cli.Context) error { c = ctx; return nil }}}
	err = app.RunContext(t.Context(), append([]string{"ovnkube", "x"}, args...))
	return c, stderr.String(), err
}

// The order of precedence is: flag, environment, settings file, Open_vSwitch row, default.
func TestWhereSettingsComeFrom(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	testkit.Run(t, "ovs-vsctl", "--no-wait", "--db="+remote, "init", "--", "set", "Open_vSwitch", ".",
		"external_ids:ovn-nb=tcp:192.0.2.4:6641",
		"external_ids:k8s-api-server=192.0.2.4:8080", "external_ids:k8s-api-token=of-ovs",
		"external_ids:k8s-ca-certificate=/ovs/ca", "external_ids:ovn-bridge-datapath-type=netdev")
	file := filepath.Join(t.TempDir(), "settings")
	const content = "[ovnnorth]\naddress=tcp:192.0.2.3:6641\n[kubernetes]\ntoken=of-file\n[logging]\nlevel=warn\n" +
		"[Default]\nmtu=1300\nnosuch=1\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := nodeInitFlags()
	at := []string{"--ovs-address", remote}
	withFile := append(slices.Clone(at), "--config-file", file)
	for _, c := range []struct {
		what string
		env  string
		args []string
		flag string
		want string
	}{
		{"default", "", nil, "nb-address", strings.Join(config.DefaultMaster().NB.Addresses, ",")},
		{"Open vSwitch", "", at, "nb-address", "tcp:192.0.2.4:6641"},
		{"Open vSwitch", "", at, "k8s-apiserver", "192.0.2.4:8080"},
		{"Open vSwitch", "", at, "k8s-cacert", "/ovs/ca"},
		{"Open vSwitch", "", at, "datapath-type", "netdev"},
		{"file", "", withFile, "nb-address", "tcp:192.0.2.3:6641"},
		{"file", "", withFile, "k8s-token", "of-file"},
		{"file", "", withFile, "mtu", "1300"},
		{"environment", "tcp:192.0.2.2:6641", withFile, "nb-address", "tcp:192.0.2.2:6641"},
		{"flag", "tcp:192.0.2.2:6641", append(slices.Clone(withFile), "--nb-address", "tcp:192.0.2.1:6641"), "nb-address",
			"tcp:192.0.2.1:6641"},
		{"a kubeconfig, so no API server from below", "", append(slices.Clone(at), "--kubeconfig", "/x"), "k8s-apiserver",
			""},
	} {
		t.Run(c.what+" "+c.flag, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("NORTHBOUND_NB_ADDRESS", c.env)
			}
			if len(c.args) == 0 {
				t.Setenv("NORTHBOUND_OVS_ADDRESS", "unix:/nonexistent/db.sock")
			}
			ctx, warnings, err := read(t, flags, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(ctx.Value(c.flag)); got != c.want {
				t.Errorf("--%s is %q, want %q", c.flag, got, c.want)
			}
			if has := strings.Contains(warnings, "[Default] nosuch is not a setting"); has != slices.Contains(c.args, file) {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

func TestBadSettings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "nosuch"): "reading --config-file: open " + dir +
			"/nosuch: no such file or directory",
		write("not-ini", "garbage\n"): "not-ini: key-value delimiter not found: garbage",
		write("no-number", "[default]\nmtu = large\n"): `setting --mtu to "large" from [default] mtu of --config-file ` +
			dir + "/no-number: ",
	} {
		_, _, err := read(t, nodeInitFlags(), "--config-file", file, "--ovs-address", "unix:/nonexistent/db.sock")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// Errors name the source and the wrong value, or the source that cannot be read. An Open_vSwitch database without its
// row has no settings.
func TestBadSources(t *testing.T) {
	row := func(value string, err error) source {
		return rowSource(func(string) (string, error) { return value, err })
	}
	for _, c := range []struct {
		from source
		want string
	}{
		{row("", nil), ""},
		{row("", ovs.ErrNoRoot), ""},
		{row("", errors.New("the row is two")), "reading --datapath-type from external_ids:ovn-bridge-datapath-type of " +
			"the Open_vSwitch row: the row is two"},
		{row("large", nil), `setting --datapath-type to "large" from external_ids:ovn-bridge-datapath-type of the ` +
			`Open_vSwitch row: parse error`},
		{fileSource("/etc/x", map[string]map[string]string{"default": {"datapath-type": "large"}}),
			`setting --datapath-type to "large" from [default] datapath-type of --config-file /etc/x: parse error`},
	} {
		app := newApp()
		// The flag is made a number here, so that a value can be malformed: all flags of the row are strings.
		app.Commands = []*cli.Command{{Name: "x", Flags: []cli.Flag{&cli.IntFlag{Name: "datapath-type"}},
			Action: func(ctx *cli.Context) error {
				_, err := fill(ctx, c.from, false)
				return err
			}}}
		err := app.RunContext(t.Context(), []string{"ovnkube", "x"})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// In a pod, what is left on the node of an API server and of how to reach it is ignored. All else counts.
func TestSettingsInAPod(t *testing.T) {
	left := source(func(s setting) (string, string, error) { return "left-" + s.key, "the node", nil })
	for inPod, from := range map[bool]source{false: left, true: left.inPod()} {
		app := newApp()
		got := map[string]string{}
		flags := []string{"kubeconfig", "k8s-apiserver", "k8s-cacert", "k8s-token", "of-no-setting", "log-format"}
		var all []cli.Flag
		for _, name := range flags {
			all = append(all, &cli.StringFlag{Name: name})
		}
		app.Commands = []*cli.Command{{Name: "x", Flags: all, Action: func(ctx *cli.Context) error {
			_, err := fill(ctx, from, false)
			for _, name := range flags {
				if v := ctx.String(name); v != "" {
					got[name] = v
				}
			}
			return err
		}}}
		if err := app.RunContext(t.Context(), []string{"ovnkube", "x"}); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"log-format": "left-format"}
		if !inPod {
			want = map[string]string{"kubeconfig": "left-kubeconfig", "k8s-apiserver": "left-apiserver",
				"k8s-cacert": "left-cacert", "k8s-token": "left-token", "log-format": "left-format"}
		}
		if !maps.Equal(got, want) {
			t.Errorf("in a pod %v: %v, want %v", inPod, got, want)
		}
	}
}

// Every setting is a flag of some command: renaming a flag must not lose its setting.
func TestEverySettingIsAFlag(t *testing.T) {
	for _, s := range allSettings() {
		if !slices.ContainsFunc(newApp().Commands, func(c *cli.Command) bool {
			return hasFlag(c, s.flag) &&
				hasFlag(c, configFlagName)
		}) {
			t.Errorf("no command with a settings file has the flag --%s", s.flag)
		}
	}
}

func TestClassicNames(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/ovn-k8s-overlay minion-init --node-name=n": "/usr/bin/ovn-k8s-overlay minion-init --node-name=n",
		"ovn-k8s-util nics-to-bridge eth0":                   "ovn-k8s-util nics-to-bridge eth0",
		"ovn-k8s-watcher --overlay --pidfile -vfile:info": "ovnkube watcher --overlay " +
			"--pidfile=/var/run/ovn-kubernetes/ovn-k8s-watcher.pid --verbose=file:info",
		"ovn-k8s-gateway-helper --physical-bridge=breth0": "ovnkube gateway-helper --physical-bridge=breth0",
		"bin/ovnkube node": "bin/ovnkube node",
	} {
		got, err := classicArgs(strings.Fields(line))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"ovn-k8s-overlay":               "ovn-k8s-overlay: want one of master-init, minion-init, gateway-init",
		"ovn-k8s-util master-init":      "ovn-k8s-util: want one of nics-to-bridge, bridges-to-nic",
		"ovn-k8s-overlay --dry-run all": "ovn-k8s-overlay: want one of",
	} {
		if got, err := classicArgs(strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want an error about %q", line, got, err, want)
		}
	}
	for program, commands := range classics() {
		for _, name := range commands {
			if !slices.Contains(commandNames(newApp().Commands), name) {
				t.Errorf("%s: there is no command %s", program, name)
			}
		}
	}
}
