package control

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Machines is how many control machines a cluster of databases needs to go on without one.
const Machines = 3

// MachineName is the name of one of several control machines, counted from 0.
func MachineName(i int) string {
	if i == 0 {
		return Name
	}
	return fmt.Sprintf("%s%d", Name, i+1)
}

// Leads reports whether a service of this machine, of several machines', is the one that works: the leader of a
// database, the active ovn-northd, or the master that holds the Lease.
func (c *Control) Leads(ctx context.Context, service string) bool {
	switch service {
	case NB, SB:
		return c.clusterSays(ctx, service, "Role: leader")
	case Northd:
		return c.says(ctx, service, "Status: active", "status")
	case Master:
		client, err := c.Client()
		if err != nil {
			return false
		}
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "northbound-master", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil &&
			strings.HasPrefix(*lease.Spec.HolderIdentity, c.Spec.Name+"_")
	}
	return false
}

// Joined reports whether the machine's server of a database is a working member of the cluster.
func (c *Control) Joined(ctx context.Context, service string) bool {
	return c.clusterSays(ctx, service, "Status: cluster member")
}

// clusterSays asks a server of a database about its cluster.
func (c *Control) clusterSays(ctx context.Context, service, line string) bool {
	for _, d := range c.databases() {
		if d.service == service {
			return c.says(ctx, service, line, "cluster/status", d.name)
		}
	}
	return false
}

// says asks a service a question through its control socket, and looks for a line in the answer.
func (c *Control) says(ctx context.Context, service, line string, question ...string) bool {
	out, err := c.Run(ctx, append([]string{"ovs-appctl", "--timeout=2", "-t", "/run/ovn/" + service + ".ctl"},
		question...)...)
	return err == nil && strings.Contains("\n"+out, "\n"+line+"\n")
}
