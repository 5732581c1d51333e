package nbrecord

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster/index"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// The rows of pods that are gone tell what they had, wherever they are among many owners. Each of several goroutines
// looks at some.
func TestUnclaimed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const many = 4 * fewOwners
	gone := []int{0, fewOwners, many/2 - 1, many - 1}
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	var ports, rows, want []string
	for i, pod := range gone {
		ports = append(ports, fmt.Sprintf(`["named-uuid","p%d"]`, i))
		rows = append(rows, fmt.Sprintf(`{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p%d","row":{"name":"p%d",`+
			`"addresses":"0a:58:0a:f4:00:05 10.244.0.%d","external_ids":["map",[["k8s.ovn.org/owner-type","Pod"],`+
			`["k8s.ovn.org/owner-name","d/%d"],["k8s.ovn.org/role","port"]]]}}`, i, i, 5+i, pod))
		want = append(want, fmt.Sprintf("10.244.0.%d/32", 5+i))
	}
	testkit.Run(t, "ovsdb-client", "transact", remote, `["OVN_Northbound",`+strings.Join(rows, ",")+
		`,{"op":"insert","table":"Logical_Switch","row":{"name":"n1","ports":["set",[`+strings.Join(ports, ",")+`]]}}]`)
	db := ovsdb.New(config.OVSDB{Addresses: []string{remote}}, nb.NewSchema(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { db.Run(ctx) })
	defer running.Wait()
	defer cancel()
	testkit.Eventually(t, "a session", func() string {
		if db.Session() == nil {
			return "none yet"
		}
		return ""
	})
	var owners []nb.Owner
	for i := range many {
		owners = append(owners, nb.Owner{Kind: names.KindPod, Name: fmt.Sprint("d/", i)})
	}
	var got []string
	for _, r := range (Records{}).Unclaimed(index.NewState(config.DefaultCluster()), db.Session(), owners) {
		got = append(got, r.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("unclaimed are %v, want %v", got, want)
	}
}
