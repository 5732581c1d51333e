package chart

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// loseDatabases deletes the files of both databases while there is no master, which would fill new ones. Pods lose no
// packet, however long that lasts. It prints how many they lose when the master is back.
func (c *installed) loseDatabases(t *testing.T) {
	before, pings := c.addresses(t), c.pingsEvery(t, "0.01")
	machines.MoreReplies(t, pings, 10)
	said := map[string]int{"nb": c.saidEmpty(t, "nb"), "sb": c.saidEmpty(t, "sb")} // when they were new
	c.masterOn(t, `{"northbound.io/nowhere":""}`)
	c.kubectl(t, "wait", "--for=delete", "pod", "--selector", "app=ovnkube-master", "--timeout=60s")
	for _, db := range []string{"nb", "sb"} {
		c.kubectl(t, "exec", "daemonset/ovn-db", "--container", db, "--", "rm", "/var/lib/ovn/ovn"+db+"_db.db")
	}
	for _, db := range []string{"nb", "sb"} {
		c.kubectl(t, "exec", "daemonset/ovn-db", "--container", db, "--", "ovs-appctl", "-t", "/run/ovn/ovn"+db+"_db.ctl",
			"exit")
	}
	for _, db := range []string{"nb", "sb"} {
		machines.Eventually(t, "an empty database "+db, func(context.Context) string {
			if c.saidEmpty(t, db) == said[db] {
				return "maintain does not say so"
			}
			return ""
		})
	}
	machines.MoreReplies(t, pings, 500)
	machines.NoGaps(t, pings)
	c.masterOn(t, `{"northbound.io/nowhere":null}`)
	if err := c.Rollout(t.Context()); err != nil {
		t.Fatal(err)
	}
	machines.InSync(t, c.Cluster)
	machines.MoreReplies(t, pings, 500)
	for _, p := range append(pings, c.streams...) {
		t.Log(p.Reset())
	}
	if after := c.addresses(t); !slices.Equal(before, after) {
		t.Errorf("addresses of pods were %v, are %v", before, after)
	}
	c.newPod(t, "after-lost-databases")
}

// saidEmpty is how often the container maintain has said that it found a database empty.
func (c *installed) saidEmpty(t *testing.T, db string) int {
	t.Helper()
	return strings.Count(c.kubectl(t, "logs", "daemonset/ovn-db", "--container", "maintain"),
		`"the database is empty: clients wait until the master and ovn-northd have filled it" database=`+db)
}

// masterOn merges labels into those that a node must have for a master.
func (c *installed) masterOn(t *testing.T, labels string) {
	t.Helper()
	c.kubectl(t, "patch", "daemonset/ovnkube-master", "--field-manager", "helm", "--type", "merge", "--patch",
		`{"spec":{"template":{"spec":{"nodeSelector":`+labels+`}}}}`)
}
