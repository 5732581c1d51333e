package server

import (
	"bytes"
	"strings"
	"testing"
)

// Keys are removed in every form that ovs-vsctl prints, wherever a write ends. All else is kept.
func TestRedact(t *testing.T) {
	long := strings.Repeat("x", maxPiece+1) + "\n"
	for given, want := range map[string]string{
		"options: {psk=secret, remote=\"::1\"}\n":            "options: {psk=removed, remote=\"::1\"}\n",
		"options : {psk=\"a secret\", remote=\"::1\"}\nnext": "options : {psk=\"removed\", remote=\"::1\"}\nnext",
		`{"data":[["map",[["psk","secret"],["x","1"]]]]}`:    `{"data":[["map",[["psk","removed"],["x","1"]]]]}`,
		`{psk="a,b \"c} d", x="1"}` + "\n":                   `{psk="removed", x="1"}` + "\n",
		`["psk","a,b"],["x","1"]`:                            `["psk","removed"],["x","1"]`,
		`{\"data\":[[\"psk\",\"secret\"]]}`:                  `{\"data\":[[\"psk\",\"removed\"]]}`,
		"psk= a b\n":                                         "psk= removed\n",
		"external_ids : {k8s-api-token=\"ey.J-_\", x=y}\n":   "external_ids : {k8s-api-token=\"removed\", x=y}\n",
		`["k8s-api-token","eyJ.a"]`:                          `["k8s-api-token","removed"]`,
		"name : psks\n":                                      "name : psks\n",
		long:                                                 long,
		"":                                                   "",
	} {
		for _, size := range []int{5, 1 << 20} {
			var out bytes.Buffer
			r := &redactor{to: &out}
			for rest := []byte(given); len(rest) > 0; {
				n := min(size, len(rest))
				if written, err := r.Write(rest[:n]); written != n || err != nil {
					t.Fatalf("%d bytes were written, %v", written, err)
				}
				rest = rest[n:]
			}
			if err := r.flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("%.100q in writes of %d: %.200q", given, size, out.String())
			}
		}
	}
}
