package byhand

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/kube/write"
)

// component names the program in the API server's logs.
const component = "northbound-byhand"

// kube is what the API server says, if one is known and answers.
type kube struct {
	asked   bool
	failure error // why it does not answer
	clients *client.Clients
	nodes   []*cluster.Node
	ranges  []netip.Prefix // of ClusterIPs, besides those that are given
}

// askKube asks the API server, if one is known, for its nodes and its ranges of ClusterIPs, once. An answer that is an
// error is asked for again for a moment: the network of a machine whose bridge was just changed may need that. Without
// an answer the command goes on with a warning.
func (s Setup) askKube(ctx context.Context) error {
	if s.Kubernetes == nil || s.kube.asked {
		return nil
	}
	s.kube.asked = true
	clients, err := client.New(*s.Kubernetes, component)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kubeTimeout)
	defer cancel()
	begun := time.Now()
	for {
		s.kube.failure = s.listKube(ctx, clients)
		if s.kube.failure == nil || ctx.Err() != nil || time.Since(begun) > kubeRetries {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
	if s.kube.failure != nil {
		fmt.Fprintf(s.Out, "warning: going on without the API server: %v\n", s.kube.failure)
	}
	return nil
}

func (s Setup) listKube(ctx context.Context, clients *client.Clients) error {
	nodes, problems, err := source.List[*cluster.Node](ctx, clients, kinds.Node())
	if err != nil {
		return err
	}
	cidrs, more, err := source.List[*cluster.ServiceCIDR](ctx, clients, kinds.ServiceCIDR())
	if err != nil {
		return err
	}
	for _, p := range append(problems, more...) {
		fmt.Fprintln(s.Out, "warning:", p)
	}
	for _, c := range cidrs {
		s.kube.ranges = append(s.kube.ranges, c.CIDRs...)
	}
	s.kube.clients, s.kube.nodes = clients, nodes
	return nil
}

// annotate writes annotations of the Node, so that the master agrees.
func (n *northbound) annotate(ctx context.Context, p allocate.Patch) error {
	for k, v := range p.Annotations {
		fmt.Fprintf(n.Out, "~ Node %s  %s=%s\n", n.Node.Name, k, v)
	}
	for _, k := range p.Remove {
		fmt.Fprintf(n.Out, "- Node %s  %s\n", n.Node.Name, k)
	}
	if n.DryRun {
		return nil
	}
	if err := write.Patch(ctx, n.kube.clients, kinds.All(), p); err != nil {
		return fmt.Errorf("writing the annotations of Node %s: %w", n.Node.Name, err)
	}
	return nil
}
