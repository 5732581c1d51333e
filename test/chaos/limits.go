package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/test/sandbox/cgroup"
	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

const (
	enough  = 200 << 20 // memory that a master may have: twice what the chart requests for it
	little  = 8 << 20   // less than it needs
	hostile = 100       // objects of each kind that are as large as the API server takes, or nearly so
	kills   = 2         // that a master suffers for its memory, one after the other
	lasting = 5 * time.Second

	hostileName = "hostile-"
	stranger    = "stranger" // the namespace of hostile Services: they leave others there nothing
	firstBeside = 95000      // the number of a pod that comes beside hostile objects
)

// masterWithoutFiles lets the master open nothing more while it has to connect again.
func masterWithoutFiles(ctx context.Context, w *world) error {
	return withoutFiles(ctx, w, w.master.Process, func() error { return northboundKilled(ctx, w) },
		"open files are short", "too many open files")
}

// northboundWithoutFiles lets the database's server accept no connection, when a new master wants one.
func northboundWithoutFiles(ctx context.Context, w *world) error {
	return withoutFiles(ctx, w, w.NB.Process, func() error { return masterKilled(ctx, w) }, "too many open files")
}

// withoutFiles has something happen while a process may open no more files, for a time in which it must log some texts.
func withoutFiles(ctx context.Context, w *world, p *process.Process, happen func() error, texts ...string) error {
	var was unix.Rlimit
	// Those that are open stay so.
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, nil, &was); err != nil {
		return fmt.Errorf("reading the limits of %s: %w", p.Name, err)
	}
	if err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}, nil); err != nil {
		return fmt.Errorf("limiting the files of %s: %w", p.Name, err)
	}
	err := errors.Join(happen(), w.pause(ctx, lasting), w.logged(ctx, p, texts...))
	if raise := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, &was, nil); raise != nil {
		return errors.Join(err, fmt.Errorf("raising the limit of files of %s: %w", p.Name, raise))
	}
	return err
}

// logged waits until a process has logged each of some texts.
func (w *world) logged(ctx context.Context, p *process.Process, texts ...string) error {
	for _, text := range texts {
		err := w.eventually(ctx, fmt.Sprintf("%s logs %q", p.Name, text), func(context.Context) (string, error) {
			if there, err := p.Logged(text); err != nil || !there {
				return "no such line: " + p.Tail(), err
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// limitMemory has masters that start from now on share a control group with so much memory, until the caller calls end.
// The master that runs then is another one.
func (w *world) limitMemory(ctx context.Context, bytes int64) (group *cgroup.Memory, end func() error, err error) {
	if group, err = cgroup.NewMemory(fmt.Sprintf("northbound-chaos-%d", os.Getpid())); err != nil {
		return nil, nil, err
	}
	end = func() error {
		w.Within = ""
		return errors.Join(masterKilled(ctx, w), group.Remove(context.WithoutCancel(ctx)))
	}
	w.Within = group.Procs()
	if err := errors.Join(group.Limit(bytes), masterKilled(ctx, w)); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return group, end, nil
}

// hostileBeside has a master with a limit of memory meet objects that are as large as they may be. It must not be
// killed for them.
func hostileBeside(ctx context.Context, w *world) (err error) {
	group, end, err := w.limitMemory(ctx, enough)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	limited := w.master
	if err := w.logged(ctx, limited.Process, "memory is limited"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.deleteHostile(ctx)) }()
	if err := load.Parallel(ctx, hostile, w.createHostile); err != nil {
		return err
	}
	if err := w.eventually(ctx, "every hostile object has an Event", w.allRefused); err != nil {
		return err
	}
	if err := w.eventually(ctx, "pods have addresses beside hostile objects", w.newPodMeanwhile()); err != nil {
		return err
	}
	select {
	case <-limited.Done():
		return fmt.Errorf("the master has ended: %s", limited.Tail())
	default:
	}
	killed, err := group.Killed()
	if err != nil || killed > 0 {
		return errors.Join(err, fmt.Errorf("%d masters were killed for their memory", killed))
	}
	peak, err := group.Peak()
	w.note("with hostile objects the master had at most %d MB", peak>>20)
	return errors.Join(err, w.transactionsAreShort(ctx, limited))
}

// transactionsAreShort notes how many transactions of a master have taken more than a second, and checks that none has
// taken much more.
func (w *world) transactionsAreShort(ctx context.Context, m *rig.Master) error {
	const took = "northbound_nb_transaction_seconds"
	var all, withinASecond, short float64
	err := m.WaitValues(ctx, func(value func(string, ...string) float64) bool { // all of one moment
		all, withinASecond = value(took+"_count"), value(took+"_bucket", `le="1.024"`)
		short = value(took+"_bucket", `le="4.096"`)
		return true
	})
	w.note("with hostile objects %.0f of %.0f transactions took longer than a second", all-withinASecond, all)
	if err == nil && (all == 0 || short < all) {
		err = fmt.Errorf("%.0f of %.0f transactions took longer than 4 seconds beside hostile objects: want some, and none"+
			" as long", all-short, all)
	}
	return err
}

// createHostile makes the i-th of each kind of hostile objects.
func (w *world) createHostile(ctx context.Context, i int) error {
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", hostileName, i), Labels: map[string]string{"chaos": "hostile"}}
	s := &corev1.Service{ObjectMeta: meta}
	for n := range 500 {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("198.%d.%d.%d", 18+n/250, i, 1+n%250),
			fmt.Sprintf("2001:db8:%x::%x", i, 1+n))
	}
	p := &networkingv1.NetworkPolicy{ObjectMeta: meta}
	var rule networkingv1.NetworkPolicyIngressRule
	for n := range 200 {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", n), Port: int32(1000 + n)})
	}
	for n := range 2000 {
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.FromInt(1 + 2*n))})
		rule.From = append(rule.From, networkingv1.NetworkPolicyPeer{
			IPBlock: &networkingv1.IPBlock{CIDR: fmt.Sprintf("192.%d.%d.%d/28", i, n%250, n/250*16)}})
	}
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{rule}
	if _, err := w.Kube.CoreV1().Services(stranger).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a hostile Service: %w", err)
	}
	if _, err := w.Kube.NetworkingV1().NetworkPolicies(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a hostile NetworkPolicy: %w", err)
	}
	return nil
}

// allRefused says how many hostile objects have no Event.
func (w *world) allRefused(ctx context.Context) (string, error) {
	events, err := w.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return "", fmt.Errorf("listing Events: %w", err)
	}
	about := map[string]bool{}
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, hostileName) {
			about[e.InvolvedObject.Kind+e.InvolvedObject.Name] = true
		}
	}
	if missing := 2*hostile - len(about); missing > 0 {
		return fmt.Sprintf("%d have none", missing), nil
	}
	return "", nil
}

// newPodMeanwhile makes a pod that the churn does not know, and asks whether it has addresses.
func (w *world) newPodMeanwhile() func(context.Context) (string, error) {
	made := false
	return func(ctx context.Context) (string, error) {
		if !made {
			if _, _, err := load.CreatePod(ctx, w.Kube, namespace, firstBeside, nodes); err != nil {
				return "", err
			}
			made = true
		}
		p, err := w.Kube.CoreV1().Pods(namespace).Get(ctx, load.PodName(firstBeside), metav1.GetOptions{})
		if err != nil || p.Annotations[load.PodNetworks] == "" {
			return "none yet", err
		}
		return "", w.deletePods(ctx, firstBeside, 1)
	}
}

func (w *world) deleteHostile(ctx context.Context) error {
	which := metav1.ListOptions{LabelSelector: "chaos=hostile"}
	services, err := w.Kube.CoreV1().Services(stranger).List(ctx, which)
	if err != nil {
		return fmt.Errorf("listing hostile Services: %w", err)
	}
	errs := []error{w.Kube.NetworkingV1().NetworkPolicies(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, which)}
	for _, s := range services.Items {
		errs = append(errs, w.Kube.CoreV1().Services(stranger).Delete(ctx, s.Name, metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}

// masterTooLarge has the kernel kill masters that want more memory than they may have, as often as they are started.
func masterTooLarge(ctx context.Context, w *world) (err error) {
	group, end, err := w.limitMemory(ctx, little)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for n := 1; ; n++ {
		select {
		case <-w.master.Done():
		case <-time.After(settleTime):
			return fmt.Errorf("a master runs on with %d MB: %s", little>>20, w.master.Tail())
		}
		killed, err := group.Killed()
		if err != nil || killed < n {
			return errors.Join(err, fmt.Errorf("%d masters were killed for their memory, want %d: %s", killed, n,
				w.master.Tail()))
		}
		if err := w.logged(ctx, w.master.Process, "memory is limited"); err != nil || n == kills {
			return err
		}
		if err := w.startMaster(ctx); err != nil { // as a kubelet or systemd would
			return err
		}
	}
}
