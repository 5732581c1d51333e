package agent

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/kube/local"
	"github.com/northbound-net/northbound/go-controller/internal/ovs"
)

// retryRefused is the pause before an optional annotation that was refused is written again. Admission policies of an
// earlier version refuse it each time.
const retryRefused = 2 * time.Minute

// attempt is what became of the last try to write an optional annotation.
type attempt struct {
	at      time.Time
	refused string // the error; "" if it was written
}

// publishReady writes the annotations of a node that lacks nothing. The first is that its agent has set up the node: a
// taint may wait for that. A Node that was made anew is not set up before it has subnets of its own. The second is the
// networks outside that the node has bridges to.
func (a *Agent) publishReady(ctx context.Context, node local.Node) {
	if node.Annotations[annotation.NodeSubnets] != "" {
		a.publishOptional(ctx, node, annotation.NodeAgentReady, annotation.NodeIsReady)
	}
	if networks, err := ovs.PhysicalNetworks(a.ovs); err == nil {
		a.publishOptional(ctx, node, annotation.NodePhysicalNetworks, annotation.MarshalNodePhysicalNetworks(networks))
	}
}

// publishOptional writes an annotation that the node works without. A failure is only logged. A later pass tries again.
func (a *Agent) publishOptional(ctx context.Context, node local.Node, key, value string) {
	last := a.memory.optional[key]
	if last.refused != "" && time.Since(last.at) < retryRefused {
		return
	}
	err := a.publish(ctx, node, map[string]string{key: value})
	if ctx.Err() != nil {
		return
	}
	now := attempt{at: time.Now()}
	if err != nil {
		now.refused = err.Error()
	}
	if now.refused != "" && now.refused != last.refused {
		a.log.Warn("an annotation of the Node can't be written", "node", a.config.Name, "annotation", key, "error", err)
	}
	a.memory.optional[key] = now
}
