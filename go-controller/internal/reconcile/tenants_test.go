package reconcile

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A master with tenants writes nothing to a database without tiers, and says why. It writes to one that has them.
func TestTenantsNeedTiers(t *testing.T) {
	for version, want := range map[string]string{"23.03": "", "25.03": "10.244.0.2"} {
		f := newFeed(&cluster.Namespace{Name: "shop", UID: "u"}, &cluster.Node{Name: "n", UID: "u"})
		c, lines := bedConfig(), make(refusals, 1)
		c.Multitenant = true
		b := newBedOf(t, testkit.StartOVSDB(t, testkit.NBSchemas()[version]), f, c,
			Config{Verify: true, Log: slog.New(slog.NewTextHandler(lines, nil))})
		if want != "" {
			b.inSync()
			if err := b.loop.Refused(); err != nil {
				t.Errorf("%s: %v", version, err)
			}
			b.eventually("addresses of nodes", want, func() string {
				return b.nbctl("--bare", "--columns=addresses", "find", "Address_Set", "name=nodes_v4")
			})
			continue
		}
		b.eventually("the database is refused", "true", func() string { return fmt.Sprint(b.loop.Refused() != nil) })
		if line := <-lines; !strings.Contains(line, "--multitenant: the Northbound database has no tiers") {
			t.Errorf("%s: the log says %s", version, line)
		}
		if rows := b.nbctl("--bare", "--columns=name", "list", "Logical_Router"); rows != "" {
			t.Errorf("%s: there is a router %s", version, rows)
		}
	}
}

// refusals receives the lines of a log about a database that is refused.
type refusals chan string

func (r refusals) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "is refused") {
		r <- string(p)
	}
	return len(p), nil
}
