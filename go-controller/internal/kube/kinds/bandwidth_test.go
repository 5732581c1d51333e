package kinds_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

func TestDecodeBandwidth(t *testing.T) {
	const in, out = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
	for what, c := range map[string]struct {
		annotations map[string]string
		want        cluster.Bandwidth
	}{
		"none": {nil, cluster.Bandwidth{}},
		"both": {map[string]string{in: "10M", out: "512k"},
			cluster.Bandwidth{Ingress: 10_000_000, Egress: 512_000}},
		"one":          {map[string]string{out: "1G"}, cluster.Bandwidth{Egress: 1_000_000_000}},
		"binary":       {map[string]string{in: "1Ki", out: "1Mi"}, cluster.Bandwidth{Ingress: 1024, Egress: 1 << 20}},
		"plain number": {map[string]string{in: "1500"}, cluster.Bandwidth{Ingress: 1500}},
		"exponent":     {map[string]string{in: "1e6"}, cluster.Bandwidth{Ingress: 1_000_000}},
		"fraction":     {map[string]string{in: "1.5M"}, cluster.Bandwidth{Ingress: 1_500_000}},
		"least and most": {map[string]string{in: "1k", out: "1P"},
			cluster.Bandwidth{Ingress: 1_000, Egress: 1_000_000_000_000_000}},
	} {
		got, problems := decode[*cluster.Pod](t, &corev1.Pod{ObjectMeta: meta("default", "web-0", c.annotations)})
		if got.Bandwidth != c.want || len(problems) != 0 {
			t.Errorf("%s: %+v, %v; want %+v", what, got.Bandwidth, problems, c.want)
		}
	}
}

// A value that is refused is a problem, and costs neither the other limit nor
// the pod.
func TestDecodeBandwidthRefuses(t *testing.T) {
	const in, out = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
	for _, raw := range []string{
		"", "fast", "10 M", "10Mbit", "-1M", "0", "999", "999999m", "1001T", "1Pi", "2P", "1e16", "99999999999999999999999",
		"1k,1k", strings.Repeat("9", 10_000),
	} {
		got, problems := decode[*cluster.Pod](t, &corev1.Pod{ObjectMeta: meta("default", "web-0",
			map[string]string{in: raw, out: "1M"}), Spec: corev1.PodSpec{NodeName: "n1"}})
		if (got.Bandwidth != cluster.Bandwidth{Egress: 1_000_000}) || !got.WantsNetwork() {
			t.Errorf("%.20q: %+v", raw, got)
		}
		wantProblems(t, "ingress", problems, [2]string{"InvalidBandwidth", "annotation " + in + ": \""})
		for _, p := range problems {
			if !strings.Contains(p.Message, "want bits per second from 1k to 1P") || len(p.Message) > 1000 ||
				p.Ref != got.Ref() || p.UID != "uid-web-0" {
				t.Errorf("%.20q: problem %+v", raw, p)
			}
		}
	}
	_, problems := decode[*cluster.Pod](t, &corev1.Pod{ObjectMeta: meta("default", "web-0",
		map[string]string{in: "x", out: "y"})})
	wantProblems(t, "both", problems, [2]string{"InvalidBandwidth", `ingress-bandwidth: "x"`},
		[2]string{"InvalidBandwidth", `egress-bandwidth: "y"`})
}
