package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A copy of the database is put back while the loop runs, as ovsdb-client(1) does it: each row gets another UUID. The
// rows of others are back. Ours become what they should be, although the load balancer groups have no room for a mark.
func TestCopyPutBack(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	b := startBed(t, remote, newFeed(someCluster()...))
	b.nbctl("ls-add", "of-others")
	file := filepath.Join(t.TempDir(), "copy.db")
	copied := testkit.Run(t, "ovsdb-client", "backup", remote, "OVN_Northbound")
	if err := os.WriteFile(file, []byte(copied), 0o600); err != nil {
		t.Fatal(err)
	}
	b.nbctl("ls-del", "of-others")
	b.feed.drop(pod("a", "n1"))
	b.feed.put(pod("c", "n1"))
	b.eventually("ports of n1", "default_c k8s-n1 stor-n1", b.portsOf("n1"))
	group := b.nbctl("get", "Load_Balancer_Group", "clusterLBGroup", "_uuid")

	testkit.Run(t, "sh", "-c", "ovsdb-client restore "+remote+" OVN_Northbound < "+file)
	b.eventually("switches", "join n1 n2 of-others", b.names("Logical_Switch"))
	b.eventually("ports of n1", "default_c k8s-n1 stor-n1", b.portsOf("n1"))
	b.eventually("ports of n2", "default_b k8s-n2 stor-n2", b.portsOf("n2"))
	b.eventually("vips", "10.96.0.10:80=10.244.0.3:8080", func() string {
		return b.nbctl("--bare", "--columns=vips", "list", "Load_Balancer")
	})
	if got := b.nbctl("get", "Load_Balancer_Group", "clusterLBGroup", "_uuid"); got == group {
		t.Errorf("the group is still %s: the copy was not put back", got)
	}
	b.eventually("owners to be written", "0", func() string {
		return fmt.Sprint(testutil.ToFloat64(b.metrics.Dirty) + testutil.ToFloat64(b.metrics.Failing))
	})
	b.restart()
}
