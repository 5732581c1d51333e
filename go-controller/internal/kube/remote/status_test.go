package remote

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

const namespace = "ovn-kubernetes"

// pod is one of the chart's, with containers that are ready or not.
func pod(app, node string, containers ...corev1.ContainerStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-" + node,
		Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: containers}}
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	for _, c := range containers {
		if !c.Ready {
			condition.Status = corev1.ConditionFalse
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, condition)
	return p
}

func status(name string, ready bool) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, Ready: ready}
	if ready {
		s.State.Running = &corev1.ContainerStateRunning{}
	} else {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}
	}
	return s
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
}

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	at, seconds := metav1.NewMicroTime(renewed), int32(1)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "northbound-master"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at,
			LeaseDurationSeconds: &seconds}}
}

// daemonSet wants so many pods, on the nodes with a label.
func daemonSet(app string, pods int32, label string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
	d.Status.DesiredNumberScheduled = pods
	d.Spec.Template.Spec.NodeSelector = map[string]string{label: "linux"}
	return d
}

func session(objects ...runtime.Object) *Session {
	return &Session{Kube: fake.NewClientset(objects...), Namespace: namespace, Default: "default",
		lookAgain: time.Millisecond}
}

// Each part of the installation is listed with its role, and what is wrong with what to type.
func TestStatus(t *testing.T) {
	excluded, leaving := node("windows"), pod("ovnkube-node", "n3", status("agent", true))
	excluded.Labels = nil
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.test/wait"}
	held := lease("n1_4711", time.Now())
	*held.Spec.LeaseDurationSeconds = 3600 // the race detector makes the fake API server slow
	said := status("ovsdb-server", false)
	said.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: "first\nit runs already\n"}
	s := session(node("n1"), node("n2"), node("n3"), excluded, leaving, daemonSet("ovnkube-master", 3, "x"),
		daemonSet("ovnkube-node", 3, corev1.LabelOSStable), held,
		pod("ovnkube-signer", "n1", status("signer", true)),
		daemonSet("ovs-node", 2, corev1.LabelOSStable), pod("ovs-node", "n1", said),
		pod("ovnkube-master", "n1", status("master", true)), pod("ovnkube-master", "n2", status("master", true)),
		pod("ovnkube-node", "n1", status("agent", true), status(container, true)),
		pod("ovnkube-node", "n2", status("agent", false), status(container, true)))
	got, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range got {
		lines = append(lines, strings.TrimRight(strings.Join([]string{c.Name, c.Node, c.Role, c.Problem, c.Try}, "|"), "|"))
	}
	want := `signer|n1
databases|||there is no pod with the label app=ovn-db|kubectl --namespace ovn-kubernetes get daemonsets,deployments,pods
master|n1|leader
master|n2|standby
master|||2 of 3 pods are there|kubectl --namespace ovn-kubernetes get daemonsets,deployments,pods
openvswitch|n1||container ovsdb-server is not ready: CrashLoopBackOff: back-off 10s: it runs already|` +
		`kubectl --namespace ovn-kubernetes logs ovs-node-n1 --container ovsdb-server
openvswitch|||1 of 2 pods are there|kubectl --namespace ovn-kubernetes get daemonsets,deployments,pods
node|n1
node|n2||container agent is not ready: CrashLoopBackOff: back-off 10s|kubectl northbound doctor n2
node|n3||no agent runs on this node|kubectl --namespace ovn-kubernetes describe daemonset ovnkube-node`
	if text := strings.Join(lines, "\n"); text != want {
		t.Errorf("status\n%s\nwant\n%s", text, want)
	}
}

// Masters that are ready but do not lead are a problem; so is an empty namespace.
func TestNobodyLeads(t *testing.T) {
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"expired":  {lease("n1_4711", time.Now().Add(-time.Hour)), "no master leads now"},
		"released": {lease("", time.Now()), "no master leads now"},
		"never":    {nil, "no master has ever led"},
	} {
		objects := []runtime.Object{pod("ovnkube-master", "n1", status("master", true)),
			pod("ovnkube-master", "n2", status("master", true))}
		if c.lease != nil {
			objects = append(objects, c.lease)
		}
		got, err := session(objects...).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range got {
			if x.Name == "master" && (x.Ready || x.Problem != c.want) {
				t.Errorf("%s: %+v, want %s", name, x, c.want)
			}
		}
	}
	if _, err := session().Status(t.Context()); err == nil || !strings.Contains(err.Error(), "is Northbound installed?") {
		t.Errorf("an empty namespace: %v", err)
	}
}

// A single master may work without an election. A Lease that is renewed is good, whatever this machine's clock says.
// What may not be asked is an error, beside what could be.
func TestLeader(t *testing.T) {
	one := pod("ovnkube-master", "n1", status("master", true))
	got, err := session(one).Status(t.Context())
	if at := slices.IndexFunc(got, func(c Component) bool { return c.Name == "master" }); err != nil || !got[at].Ready {
		t.Errorf("one master without a Lease: %+v, %v", got, err)
	}
	s := session(one, lease("n1_4711", time.Now().Add(-time.Hour)))
	reads := 0
	kube := s.Kube.(*fake.Clientset)
	kube.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		reads++
		return true, lease("n1_4711", time.Now().Add(time.Duration(reads)*time.Second-time.Hour)), nil
	})
	if host, problem, err := s.leader(t.Context()); host != "n1" || problem != "" || err != nil || reads != 2 {
		t.Errorf("a Lease that is renewed: %q, %q, %v, after %d reads", host, problem, err, reads)
	}
	kube.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "northbound-master", nil)
	})
	got, err = s.Status(t.Context())
	if !apierrors.IsForbidden(err) || len(got) == 0 {
		t.Errorf("a Lease that may not be read: %+v, %v", got, err)
	}
}

// A server is where its container runs; one of a pod that is ready goes first.
func TestOnNode(t *testing.T) {
	s := session(pod("ovnkube-master", "n1", status("master", false), status(container, true)),
		pod("ovnkube-master", "n2", status("master", true), status(container, true)),
		pod("ovnkube-master", "n3", status("master", true), status(container, false)))
	for want, given := range map[string]string{"n2": "", "n1": "n1"} {
		if got, err := s.OnNode(t.Context(), diagnostics.Master, given); err != nil || got.Node != want {
			t.Errorf("on node %q: %+v, %v; want %s", given, got, err, want)
		}
	}
	for place, want := range map[diagnostics.Place]string{diagnostics.Master: "want one of n1, n2",
		diagnostics.Node: "no pod ovnkube-node"} {
		if _, err := s.OnNode(t.Context(), place, "n3"); !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s: %v, want %s", place, err, want)
		}
	}
}

func TestFileBytes(t *testing.T) {
	for text, want := range map[string]map[string]int64{
		"12345 /var/lib/ovn/ovnnb_db.db\n67 /var/lib/ovn/ovnsb_db.db\n": {"nb": 12345, "sb": 67},
		"stat: cannot stat 'ovnnb_db.db'\n67 /a/ovnsb_db.db\n":          {"sb": 67},
		"": {},
	} {
		if got := fileBytes(text); !maps.Equal(got, want) {
			t.Errorf("fileBytes(%q) = %v, want %v", text, got, want)
		}
	}
}

// The role of a server is read from what ovsdb-server says of its cluster.
func TestRaftRole(t *testing.T) {
	three := "a4ef\nName: OVN_Northbound\nRole: follower\nTerm: 7\nLeader: 19fb\nElection timer: 4000\n" +
		"Log: [2, 40]\nEntries not yet committed: 0\nEntries not yet applied: 0\nConnections: ->19fb\nServers:\n" +
		"    19fb (19fb at unix:a) last msg 1 ms ago\n" +
		"    2222 (2222 at unix:b) (self)\n    3333 (3333 at unix:c)\n"
	for text, want := range map[string]string{
		three: "follower of 3 (term 7)",
		strings.NewReplacer("committed: 0", "committed: 5", "applied: 0", "applied: 2").Replace(three): "follower of 3 " +
			"(term 7, lag of 7 entries)",
		"Role: leader\nTerm: 1\nServers:\n    19fb (19fb at unix:a) (self)\n": "alone",
		"": "alone",
	} {
		if got := raftRole(text); got != want {
			t.Errorf("raftRole(%q) = %q, want %q", text, got, want)
		}
	}
}
