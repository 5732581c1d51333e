package doctor

import (
	"context"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

func checkAgent(ctx context.Context, h *facts) Finding {
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	answers, err := ready(ctx, h.c.Node.Metrics)
	switch {
	case !answers:
		return unchecked("no agent answers at --metrics-bind-address %s: %v", h.c.Node.Metrics, err)
	case err != nil:
		return problem("the agent says: %v", err).fixed("journalctl -u ovnkube-node")
	}
	return ok("ready")
}

func checkAPIServer(_ context.Context, h *facts) Finding {
	switch {
	case !h.c.Kubernetes:
		return unchecked("no API server is given (--kubeconfig or --k8s-apiserver)")
	case h.apiErr != nil:
		return problem("%v", h.apiErr).
			fixed("# does it run, and is it reached from here? is the certificate authority (--k8s-cacert) its own?")
	case h.nodeErr != nil:
		return problem("%v", h.nodeErr).
			fixed("# the identity needs get, list and watch of its own Node: a kubelet's has them")
	case !h.nodeOK:
		return problem("there is no Node %q", h.c.Node.Name).
			fixed("# the kubelet makes it: does it run? is --node-name right? kubectl get nodes")
	}
	return ok("%s %s, Node %s", h.answer.Server, h.answer.Version, h.c.Node.Name)
}

// maxSkew is how far clocks may be apart. Leases and fresh certificates bear more, but
// logs of two machines can't be read together then.
const maxSkew = 5 * time.Second

func checkClock(_ context.Context, h *facts) Finding {
	switch {
	case !h.c.Kubernetes:
		return unchecked("no API server is given to compare with")
	case h.apiErr != nil || h.answer.Date.IsZero():
		return unchecked("the API server does not tell the time")
	}
	return Clock(h.answer)
}

// Clock compares this host's clock with that of an API server that has told the time.
func Clock(answer client.Answer) Finding {
	skew := answer.Skew()
	if skew.Abs() > maxSkew {
		way := "ahead of"
		if skew < 0 {
			way = "behind"
		}
		return problem("this host's clock is %s %s the API server's", skew.Abs().Round(time.Second), way).
			fixed("timedatectl set-ntp true", "chronyc makestep  # where chrony keeps the time")
	}
	return ok("less than %s apart from the API server's", maxSkew)
}
