package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ufw's own files are read: these are as ufw 0.36 writes them.
func TestReadUFW(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"etc/ufw/ufw.conf": "# Set to yes to start on boot.\nENABLED=yes\n\nLOGLEVEL=low\n",
		"etc/default/ufw":  "IPV6=yes\nDEFAULT_INPUT_POLICY=\"DROP\"\nDEFAULT_FORWARD_POLICY=\"ACCEPT\"\n",
		"etc/ufw/user.rules": "*filter\n### RULES ###\n\n" +
			"### tuple ### allow udp 6081 0.0.0.0/0 any 0.0.0.0/0 in\n" +
			"-A ufw-user-input -p udp --dport 6081 -j ACCEPT\n\n" +
			"### tuple ### allow tcp 6641:6644 0.0.0.0/0 any 10.0.0.0/8 in\n" +
			"### tuple ### deny tcp 7000 0.0.0.0/0 any 0.0.0.0/0 in\n" +
			"### tuple ### route:allow tcp 7001 0.0.0.0/0 any 0.0.0.0/0 in_eth0!out_eth1\n" +
			"### tuple ### allow_log tcp 22 0.0.0.0/0 any 0.0.0.0/0 OpenSSH - in comment=612062\n\n### END RULES ###\n",
		"etc/ufw/user6.rules": "### tuple ### limit any 9000 ::/0 any ::/0 in_eth0 comment=612062\n### tuple ### allow\n",
	}
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u, err := readUFW(root)
	if err != nil || !u.Enabled || !u.DropsInput || u.DropsForwarded {
		t.Fatalf("got %+v, %v; want it enabled, and to drop input alone", u, err)
	}
	accepts := func(protocol string, port int) (is bool) {
		for _, a := range u.accepts {
			is = is || a.includes(protocol, port)
		}
		return is
	}
	for _, c := range []struct {
		protocol string
		port     int
		want     bool
	}{
		{"udp", 6081, true}, {"tcp", 6081, false}, {"tcp", 6641, true}, {"tcp", 6644, true}, {"tcp", 6645, false},
		{"tcp", 7000, false}, {"tcp", 7001, false}, {"tcp", 22, true}, {"tcp", 9000, true}, {"udp", 9000, true},
	} {
		if got := accepts(c.protocol, c.port); got != c.want {
			t.Errorf("%s %d is accepted: %v, want %v", c.protocol, c.port, got, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/ufw/ufw.conf"), []byte("ENABLED=no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if u, err := readUFW(root); err != nil || u.Enabled {
		t.Errorf("a disabled one: %+v, %v", u, err)
	}
	if u, err := readUFW(t.TempDir()); err != nil || u.Enabled {
		t.Errorf("a machine without ufw: %+v, %v", u, err)
	}
}

// NetworkManager's configuration is read as `NetworkManager --print-config` of version 1.52 prints it.
func TestUnmanaged(t *testing.T) {
	const printed = `# NetworkManager configuration: /etc/NetworkManager/NetworkManager.conf

[main]
# rc-manager=auto
plugins=ifupdown,keyfile

[ifupdown]
managed=false

[keyfile]
unmanaged-devices=interface-name:foo*;mac:00:22:68:1c:59:b1;interface-name:=bar,eth9

[device]
# wifi.backend=wpa_supplicant

[device-northbound]
match-device=interface-name:br-int;interface-name:k8s-*;except:interface-name:k8s-mine;driver:veth
managed=0

[device-eth]
match-device=interface-name:eth*
managed=1
`
	for link, want := range map[string]bool{"foo1": true, "bar": true, "bar1": false, "eth9": true, "eth0": false,
		"br-int": true, "k8s-n1": true, "k8s-mine": false, "veth": false} {
		if got := unmanaged(printed, link); got != want {
			t.Errorf("%s is left alone: %v, want %v", link, got, want)
		}
	}
	if !unmanaged("[keyfile]\nunmanaged-devices=*\n", "br-int") || unmanaged("", "br-int") {
		t.Error("a list of all devices, or no configuration, is misread")
	}
	// What the check says to type solves what it found.
	c, f := healthy()
	f.Processes["NetworkManager"] = true
	fix := checkNetworkManager(c, f).Fix[0]
	_, fix, _ = strings.Cut(fix, "printf '")
	fix, _, _ = strings.Cut(fix, "'")
	f.NetworkManager = strings.ReplaceAll(fix, `\n`, "\n")
	if got := checkNetworkManager(c, f); len(got.Fix) != 0 {
		t.Errorf("with %q: %+v", f.NetworkManager, got)
	}
}
