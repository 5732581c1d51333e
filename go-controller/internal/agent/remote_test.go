package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A tcp: address of the Southbound database that others have set is refused, unless the agent sets another or the flag
// allows it. Then the log says so.
func TestRemoteOfOthers(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.VSwitchSchema())
	vsctl := func(args ...string) {
		testkit.Run(t, "ovs-vsctl", append([]string{"--db=" + remote, "--no-wait"}, args...)...)
	}
	vsctl("init")
	for _, c := range []struct {
		remote, address string
		allowed         bool
		refused         bool
		warned          bool
	}{
		{remote: "tcp:10.0.0.1:6642", refused: true},
		{remote: "ssl:10.0.0.1:6642, tcp:[fd00::1]:6642", refused: true},
		{remote: "tcp:10.0.0.1:6642", allowed: true, warned: true},
		{remote: "tcp:10.0.0.1:6642", address: "ssl:10.0.0.1:6642"},
		{remote: "ssl:10.0.0.1:6642"},
		{remote: "unix:/run/ovn/ovnsb_db.sock"},
	} {
		vsctl("set", "Open_vSwitch", ".", `external_ids:ovn-remote="`+c.remote+`"`)
		db, err := ovs.Open(t.Context(), remote, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		a := &Agent{config: config.Node{SBAddress: c.address, AllowTCP: c.allowed}, ovs: db,
			log: slog.New(slog.NewTextHandler(&log, nil))}
		err = a.checkRemote()
		db.Close()
		if (err != nil) != c.refused || (log.Len() > 0) != c.warned {
			t.Errorf("%+v: error %v, log %q", c, err, log.String())
		}
		if c.refused && !strings.Contains(err.Error(), "--insecure-databases") {
			t.Errorf("the error %q does not name the flag", err)
		}
	}
}
