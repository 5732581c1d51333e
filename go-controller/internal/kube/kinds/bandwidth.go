package kinds

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// The annotations that limit a pod's bandwidth, in bits per second, and the range of their values (Kubernetes docs,
// "Network Plugins", "Support traffic shaping").
const (
	ingressBandwidth = "kubernetes.io/ingress-bandwidth"
	egressBandwidth  = "kubernetes.io/egress-bandwidth"
	leastBandwidth   = 1_000
	mostBandwidth    = 1_000_000_000_000_000
)

// reasonBandwidth is the reason of a Problem with a pod's bandwidth annotation.
const reasonBandwidth = "InvalidBandwidth"

// decodeBandwidth reads the limits of a pod. A malformed limit is a Problem and limits nothing.
func decodeBandwidth(f *findings, annotations map[string]string) (b cluster.Bandwidth) {
	for _, a := range []struct {
		key   string
		limit *uint64
	}{{ingressBandwidth, &b.Ingress}, {egressBandwidth, &b.Egress}} {
		raw, ok := annotations[a.key]
		if !ok {
			continue
		}
		limit, err := parseBandwidth(raw)
		if err != nil {
			f.bad(reasonBandwidth, "annotation %s: %.64q is %v; want bits per second from 1k to 1P, such as 10M: "+
				"the pod has no limit in that direction", a.key, raw, err)
			continue
		}
		*a.limit = limit
	}
	return b
}

func parseBandwidth(raw string) (uint64, error) {
	q, err := resource.ParseQuantity(raw)
	if err != nil {
		return 0, errors.New("not a quantity")
	}
	// Compared as a quantity: one beyond 64 bits has no Value.
	if q.Cmp(*resource.NewQuantity(leastBandwidth, resource.DecimalSI)) < 0 ||
		q.Cmp(*resource.NewQuantity(mostBandwidth, resource.DecimalSI)) > 0 {
		return 0, errors.New("out of range")
	}
	return uint64(q.Value()), nil
}
