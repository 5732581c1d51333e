package resolve

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts(strings.NewReader("# comment\n\n127.0.0.1 localhost\n192.0.2.1\tWWW.example.org. " +
		"a.example # b\n2001:db8::1 www.example.org\nfe80::1%eth0 a.example\n"))
	want := "map[a.example:[192.0.2.1 fe80::1] www.example.org:[192.0.2.1 2001:db8::1]]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if _, err := ParseHosts(strings.NewReader("\nwww.example.org 192.0.2.1\n")); err == nil ||
		err.Error() != `line 2: "www.example.org": want an address, then names` {
		t.Errorf("%v", err)
	}
}
