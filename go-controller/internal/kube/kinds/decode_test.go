package kinds_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

func meta(ns, name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name), Annotations: annotations,
		CreationTimestamp: metav1.Unix(1700000000, 0)}
}

func ptr[T any](v T) *T { return &v }

// decodeAny decodes an object of any of the kinds. It returns nil for an object of another type.
func decodeAny(obj runtime.Object) (cluster.Object, []cluster.Problem) {
	for _, k := range kinds.All() {
		if o, problems := k.Decode(obj); o != nil {
			return o, problems
		}
	}
	return nil, nil
}

func decode[T cluster.Object](t *testing.T, obj runtime.Object) (T, []cluster.Problem) {
	t.Helper()
	o, problems := decodeAny(obj)
	out, ok := o.(T)
	if !ok {
		t.Fatalf("%T decodes to %T", obj, o)
	}
	return out, problems
}

// wantProblems compares reasons, and that each message holds its part.
func wantProblems(t *testing.T, what string, got []cluster.Problem, want ...[2]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: problems %v, want %d", what, got, len(want))
		return
	}
	for i, p := range got {
		if p.Reason != want[i][0] || !strings.Contains(p.Message, want[i][1]) {
			t.Errorf("%s: problem %q: %q; want %q: ...%q...", what, p.Reason, p.Message, want[i][0], want[i][1])
		}
	}
}

func TestDecodeOthers(t *testing.T) {
	for _, obj := range []runtime.Object{&corev1.ConfigMap{}, nil} {
		if o, _ := decodeAny(obj); o != nil {
			t.Errorf("%T is decoded to %v", obj, o)
		}
	}
	got, problems := decode[*cluster.Namespace](t, &corev1.Namespace{ObjectMeta: meta("", "default", nil)})
	name := cluster.NewLabels(map[string]string{corev1.LabelMetadataName: "default"})
	if *got != (cluster.Namespace{Name: "default", UID: "uid-default", Labels: name}) || len(problems) != 0 {
		t.Errorf("namespace: %+v, %v", got, problems)
	}
}

// A pod of a primary network has network-status without having asked for any network. A patch that did not know of it
// would be refused for good.
func TestDecodeNetworkStatus(t *testing.T) {
	for _, has := range []bool{false, true} {
		annotations := map[string]string{annotation.PodClassic: "{}"}
		if has {
			annotations[annotation.NetworkStatus] = "[]"
		}
		got, _ := decode[*cluster.Pod](t, &corev1.Pod{ObjectMeta: meta("red", "a", annotations)})
		if got.StatusOK != has {
			t.Errorf("with annotation %v: StatusOK %v", has, got.StatusOK)
		}
	}
}

func TestDecodeNode(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, c := range []struct {
		annotations map[string]string
		want        []netip.Prefix
		refused     string
	}{
		{nil, nil, ""},
		{map[string]string{annotation.NodeSubnets: `{"default":["10.244.1.0/24"]}`},
			[]netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}, ""},
		{map[string]string{annotation.NodeSubnets: `{"default":["10.244.1.7/24"]}`}, nil, "10.244.1.7/24 has host bits set"},
		{map[string]string{annotation.NodeSubnets: ``}, nil, ""},
		{map[string]string{annotation.NodeSubnets: `x`}, nil, "not JSON"},
	} {
		got, problems := decode[*cluster.Node](t, &corev1.Node{ObjectMeta: meta("", long, c.annotations)})
		if got.Name != long || got.UID != "uid-"+long || got.Created != 1700000000 || len(problems) != 0 {
			t.Errorf("%v: %+v, %v", c.annotations, got, problems)
		}
		subnets, _, err := annotation.NodeSubnetsIn(got.Annotated, names.Own)
		if !slices.Equal(subnets, c.want) || (err == nil) != (c.refused == "") ||
			err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%v: subnets %v, refused as %v", c.annotations, subnets, err)
		}
	}
	got, _ := decode[*cluster.Node](t, &corev1.Node{ObjectMeta: meta("", "n",
		map[string]string{annotation.NodeChassisID: "chassis-1"})})
	if got.ChassisID != "chassis-1" {
		t.Errorf("chassis %q, want chassis-1", got.ChassisID)
	}
	labelled := &corev1.Node{ObjectMeta: meta("", "n", nil)}
	labelled.Labels = map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelTopologyRegion: "r"}
	if got, _ := decode[*cluster.Node](t, labelled); got.Zone != "a" {
		t.Errorf("zone %q, want a", got.Zone)
	}
}

// What a Node says of its agent, and what waits for the agent.
func TestDecodeReadiness(t *testing.T) {
	n := &corev1.Node{ObjectMeta: meta("", "n", nil)}
	got, _ := decode[*cluster.Node](t, n)
	if got.AgentReady || len(got.Taints) > 0 || got.Available {
		t.Errorf("a bare Node: %+v", got)
	}
	n.Annotations = map[string]string{annotation.NodeAgentReady: "yes"}
	if got, _ := decode[*cluster.Node](t, n); got.AgentReady {
		t.Error("an annotation of another value counts")
	}
	n.Annotations[annotation.NodeAgentReady] = annotation.NodeIsReady
	n.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
		{Key: names.TaintAgentNotReady, Value: "v", Effect: corev1.TaintEffectNoSchedule},
		{Key: names.TaintAgentNotReady + "-2", Effect: corev1.TaintEffectNoExecute},
		{Key: names.TaintAgentNotReady, Effect: corev1.TaintEffectNoExecute},
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse}}
	want := []cluster.Taint{
		{At: 1, JSON: `{"key":"northbound.io/agent-not-ready","value":"v","effect":"NoSchedule"}`},
		{At: 3, JSON: `{"key":"northbound.io/agent-not-ready","effect":"NoExecute"}`},
	}
	if got, _ := decode[*cluster.Node](t, n); !got.AgentReady || !got.Available || !slices.Equal(got.Taints, want) {
		t.Errorf("got %+v, want it ready, available, and with the taints %v", got, want)
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown} {
		n.Status.Conditions[0].Status = status
		if got, _ := decode[*cluster.Node](t, n); got.Available {
			t.Errorf("condition NetworkUnavailable %s: available", status)
		}
	}
}

func TestDecodePod(t *testing.T) {
	const networks = `{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03",` +
		`"gateway_ips":["10.244.1.1"],"ip_address":"10.244.1.3/24","gateway_ip":"10.244.1.1","role":"primary"}}`
	const classic = `{"gateway_ip":"10.244.1.1","ip_address":"10.244.1.3/24","mac_address":"0a:58:0a:f4:01:03"}`
	pod := func(a map[string]string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: meta("default", "web-0", a), Spec: corev1.PodSpec{NodeName: "n1"}}
		if change != nil {
			change(p)
		}
		return p
	}
	base := func(change func(*cluster.Pod)) *cluster.Pod {
		p := &cluster.Pod{Name: cluster.Name{Namespace: "default", Name: "web-0"}, UID: "uid-web-0", Node: "n1",
			Created: 1700000000}
		if change != nil {
			change(p)
		}
		return p
	}
	phase := func(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }
	finished := base(func(p *cluster.Pod) { p.Finished = true })
	for what, c := range map[string]struct {
		pod  *corev1.Pod
		want *cluster.Pod
	}{
		"plain":         {pod(nil, nil), base(nil)},
		"not scheduled": {pod(nil, func(p *corev1.Pod) { p.Spec.NodeName = "" }), base(func(p *cluster.Pod) { p.Node = "" })},
		"host network": {pod(nil, func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
			base(func(p *cluster.Pod) { p.HostNetwork = true })},
		"running":       {pod(nil, phase(corev1.PodRunning)), base(nil)},
		"unknown phase": {pod(nil, phase(corev1.PodUnknown)), base(nil)},
		"succeeded":     {pod(nil, phase(corev1.PodSucceeded)), finished},
		"failed":        {pod(nil, phase(corev1.PodFailed)), finished},
		// it has its network until it is gone
		"being deleted": {pod(nil, func(p *corev1.Pod) { p.DeletionTimestamp = ptr(metav1.Unix(1700000001, 0)) }), base(nil)},
		"annotated": {pod(map[string]string{annotation.PodNetworks: networks, annotation.PodClassic: classic}, nil),
			base(func(p *cluster.Pod) { p.Annotated, p.ClassicOK = networks, true })},
		"classic missing": {pod(map[string]string{annotation.PodNetworks: networks}, nil),
			base(func(p *cluster.Pod) { p.Annotated = networks })},
		"classic tampered with": {pod(map[string]string{annotation.PodNetworks: networks,
			annotation.PodClassic: `{"ip_address":"1.2.3.4/5"}`}, nil),
			base(func(p *cluster.Pod) { p.Annotated = networks })},
		"in several networks": {pod(map[string]string{annotation.PodNetworks: networks[:len(networks)-1] + ` , "x": 1}`,
			annotation.PodClassic: classic}, nil), base(func(p *cluster.Pod) {
			p.Annotated, p.ClassicOK = networks[:len(networks)-1]+` , "x": 1}`, true
		})},
		"classic only": {pod(map[string]string{annotation.PodClassic: classic}, nil), base(nil)},
	} {
		got, problems := decode[*cluster.Pod](t, c.pod)
		found := cluster.NewFound(c.pod.Annotations, annotation.PodNetworks, annotation.PodClassic)
		if now := got.FoundNow(); !now.Equal(found) || got.ClassicOK && got.Found.Values != nil {
			t.Errorf("%s: found %+v, kept %+v, want %+v", what, now, got.Found, found)
		}
		got.Found = cluster.Found{}
		if !got.Equal(c.want) || len(problems) != 0 {
			t.Errorf("%s: %+v, %v; want %+v", what, got, problems, c.want)
		}
	}
	for _, tampered := range []string{"x", "{", `{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"zz"}}`,
		strings.Repeat("[", 100000)} {
		got, _ := decode[*cluster.Pod](t, pod(map[string]string{annotation.PodNetworks: tampered,
			annotation.PodClassic: classic}, nil))
		if now := got.FoundNow().Values[annotation.PodNetworks]; now != tampered {
			t.Errorf("tampered annotation %.40q: found %.40q", tampered, now)
		}
		_, _, err := annotation.PodNetworkIn(got.Annotated, "default")
		if got.ClassicOK || err == nil || len(got.Annotated) > 20_000 ||
			!strings.HasPrefix(err.Error(), "parsing k8s.ovn.org/pod-networks ") || len(err.Error()) > 1000 {
			t.Errorf("tampered annotation %.40q: kept as %.40q, refused as %v", tampered, got.Annotated, err)
		}
	}
}

func TestDecodeServiceCIDR(t *testing.T) {
	c, problems := decode[*cluster.ServiceCIDR](t, &networkingv1.ServiceCIDR{ObjectMeta: meta("", "more", nil),
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"fd03::1/112", "10.97.0.0/33", "10.98.0.0/16"}}})
	want := []netip.Prefix{netip.MustParsePrefix("10.98.0.0/16"), netip.MustParsePrefix("fd03::/112")}
	if c.Name != "more" || !slices.Equal(c.CIDRs, want) {
		t.Errorf("decoded %+v, want %v", c, want)
	}
	wantProblems(t, "ServiceCIDR", problems, [2]string{"InvalidServiceCIDR", `spec.cidrs[1]: "10.97.0.0/33": want`})
}

// A node whose agent has said that it has no bridge is not one whose agent has said nothing.
func TestDecodePhysicalNetworks(t *testing.T) {
	n := &corev1.Node{ObjectMeta: meta("", "n", nil)}
	for value, want := range map[string]string{"": "unknown", `[]`: "without lan", `["b","lan"]`: "with lan",
		`["b"]`: "without lan", `lan`: "unknown, InvalidPhysicalNetworks"} {
		if n.Annotations = nil; value != "" {
			n.Annotations = map[string]string{annotation.NodePhysicalNetworks: value}
		}
		node, problems := decode[*cluster.Node](t, n)
		got := map[bool]string{true: "without lan", false: "with lan"}[node.Unbridged("lan")]
		if node.SameBridges(nil) {
			got = "unknown"
		}
		for _, p := range problems {
			got += ", " + p.Reason
		}
		if got != want || node.Equal(&cluster.Node{Name: "n"}) {
			t.Errorf("annotation %q: %s, want %s", value, got, want)
		}
	}
}
