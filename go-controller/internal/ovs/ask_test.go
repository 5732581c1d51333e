package ovs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestAsk(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	testkit.Run(t, "ovs-vsctl", "--db="+remote, "--no-wait", "init", "--", "set", "Open_vSwitch", ".", "external_ids:a=1",
		"external_ids:b=x y",
		"--", "add-br", "br0", "--", "add-port", "br0", "p0", "--", "set", "bridge", "br0", "mcast_snooping_enable=true",
		"flood_vlans=3")
	rows, err := Ask(t.Context(), remote, nil, Database,
		Select{Table: "Open_vSwitch", Columns: []string{"external_ids", "ovs_version"}},
		Select{Table: "Bridge", Columns: []string{"name", "ports", "mcast_snooping_enable", "flood_vlans", "fail_mode"},
			Where: Is("name", "br0")},
		Select{Table: "Bridge", Columns: []string{"name"}, Where: Is("name", "br1")},
		Select{Table: "Open_vSwitch", Columns: []string{"_uuid"}, Where: HasPair("external_ids", "a", "1")},
		Select{Table: "Open_vSwitch", Columns: []string{"_uuid"}, Where: HasPair("external_ids", "a", "x y")},
		Select{Table: "Port", Columns: []string{"_uuid"}, Where: Is("name", "p0")})
	if err != nil {
		t.Fatal(err)
	}
	if ids := rows[0][0].Map("external_ids"); len(ids) != 2 || ids["a"] != "1" || ids["b"] != "x y" {
		t.Errorf("external_ids %v", ids)
	}
	b := rows[1][0]
	if len(rows[1]) != 1 || len(rows[2]) != 0 || b.Text("name") != "br0" || len(b.Set("ports")) != 2 ||
		len(b.Text("ports")) != 36 ||
		!b.Bool("mcast_snooping_enable") || b.Int("flood_vlans") != 3 || b.Text("fail_mode") != "" || b.Text("nosuch") != "" {
		t.Errorf("bridge %v", rows[1:])
	}
	if len(rows[3]) != 1 || len(rows[4]) != 0 {
		t.Errorf("roots with a=1: %v, with a=x y: %v", rows[3], rows[4])
	}
	port := rows[5][0].Text("_uuid")
	rows, err = Ask(t.Context(), remote, nil, Database,
		Select{Table: "Bridge", Columns: []string{"name"}, Where: HasRow("ports", port)},
		Select{Table: "Bridge", Columns: []string{"name"}, Where: HasRow("mirrors", port)},
		Select{Table: "Port", Columns: []string{"name"}, Where: IsRow("_uuid", port)})
	if err != nil || len(rows[0]) != 1 || rows[0][0].Text("name") != "br0" || len(rows[1]) != 0 || len(rows[2]) != 1 ||
		rows[2][0].Text("name") != "p0" {
		t.Errorf("bridges with port %s: %v, %v", port, rows, err)
	}
	for want, ask := range map[string]func() error{
		"unknown database": func() error {
			_, err := Ask(t.Context(), remote, nil, "Nosuch", Select{Table: "Bridge"})
			return err
		},
		"Nosuch": func() error {
			_, err := Ask(t.Context(), remote, nil, Database, Select{Table: "Nosuch", Columns: []string{"name"}})
			return err
		},
		"want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT": func() error {
			_, err := Ask(t.Context(), "here", nil, Database)
			return err
		},
		"an ssl: address needs keys": func() error {
			_, err := Ask(t.Context(), "ssl:127.0.0.1:1", nil, Database)
			return err
		},
		"no such file": func() error {
			_, err := AskSchema(t.Context(), "unix:/nonexistent", nil, Database)
			return err
		},
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// What is on the wire is told apart as RFC 7047 section 5.1 says.
func TestRow(t *testing.T) {
	for wire, want := range map[string][]string{
		`"a"`:                                  {"a"},
		`["uuid","u1"]`:                        {"u1"},
		`["set",[]]`:                           nil,
		`["set",["a","b"]]`:                    {"a", "b"},
		`["set",[["uuid","u1"],["uuid","u"]]]`: {"u1", "u"},
		`5`:                                    nil,
		`null`:                                 nil,
		`["set"]`:                              nil,
	} {
		var r Row
		if err := json.Unmarshal([]byte(`{"c":`+wire+`}`), &r); err != nil {
			t.Fatal(err)
		}
		if have := r.Set("c"); !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", wire, have, want)
		}
		if m := r.Map("c"); len(m) != 0 {
			t.Errorf("%s as a map: %v", wire, m)
		}
	}
}

func TestLacking(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	s, err := AskSchema(t.Context(), remote, nil, Database)
	if err != nil || s.Version == "" {
		t.Fatal(s.Version, err)
	}
	if lacking := Lacking(s); len(lacking) != 0 {
		t.Errorf("our own schema lacks %v", lacking)
	}
	s.Columns["Bridge"] = slices.DeleteFunc(s.Columns["Bridge"], func(c string) bool { return c == "fail_mode" })
	delete(s.Columns, "Port")
	if lacking := Lacking(s); !slices.Contains(lacking, "Bridge.fail_mode") || !slices.Contains(lacking, "Port.name") ||
		slices.Contains(lacking, "Bridge.name") {
		t.Errorf("lacking %v", lacking)
	}
}

func TestAppctl(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	testkit.StartVSwitch(t)
	out, err := Appctl(t.Context(), "/run/openvswitch", "ovs-vswitchd", "version")
	if err != nil || !strings.HasPrefix(out, "ovs-vswitchd (Open vSwitch) ") {
		t.Errorf("%q, %v", out, err)
	}
	testkit.Eventually(t, "the command that a vswitchd has a moment after it answers", func() string {
		if out, err := Appctl(t.Context(), "/run/openvswitch", "ovs-vswitchd", "ovs/route/lookup", "127.0.0.1"); err != nil ||
			!strings.Contains(out, "dev lo") {
			return fmt.Sprintf("%q, %v", out, err)
		}
		return ""
	})
	if _, err := Appctl(t.Context(), "/run/openvswitch", "ovs-vswitchd", "nosuch"); err == nil ||
		!strings.Contains(err.Error(), `"nosuch" is not a valid command`) {
		t.Error(err)
	}
	if _, err := Appctl(t.Context(), "/run/openvswitch", "nosuch", "version"); err == nil || !strings.Contains(err.Error(),
		"finding nosuch") {
		t.Error(err)
	}
}
