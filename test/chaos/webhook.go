package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/webhook"
)

const (
	patched   = 60 // pods that come while the webhook is slow
	slowEvery = 2  // of which the webhook lets every second wait: more than the master patches at a time
	firstSlow = 90000
)

// questions is what a webhook was asked. It lets changes of some pods wait until it is released.
type questions struct {
	release chan struct{}

	mu    sync.Mutex
	asked int
	waits map[string]int // how often it was asked, by the names of pods that wait
}

func (q *questions) hold(ctx context.Context, pod string) {
	q.mu.Lock()
	q.asked++
	if isSlow(pod) {
		q.waits[pod]++
	}
	q.mu.Unlock()
	if isSlow(pod) {
		select {
		case <-q.release:
		case <-ctx.Done():
		}
	}
}

// isSlow tells whether the webhook lets changes of the pod wait.
func isSlow(name string) bool {
	for i := firstSlow; i < firstSlow+patched; i += slowEvery {
		if name == load.PodName(i) {
			return true
		}
	}
	return false
}

// webhookSlow has pods come while a webhook lets patches of every second one wait. The others are served meanwhile: not
// only when the master has given up its first attempts for those that wait, and makes the next.
//
// Nodes stay meanwhile. A webhook may admit a patch that the master has given up. If the Node was replaced before that,
// the pod gets other addresses, before it has a port.
func webhookSlow(ctx context.Context, w *world) (err error) {
	w.churn.keepNodes.Store(true)
	defer w.churn.keepNodes.Store(false)
	asked := &questions{release: make(chan struct{}), waits: map[string]int{}}
	hook, err := webhook.Start(ctx, w.Dir, w.Kube, asked.hold)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hook.Close(ctx)) }()
	released := sync.OnceFunc(func() { close(asked.release) })
	defer released()
	if err := w.eventually(ctx, "the webhook is asked", asked.wasAsked); err != nil {
		return err
	}
	err = load.Parallel(ctx, patched, func(ctx context.Context, i int) error {
		_, _, err := load.CreatePod(ctx, w.Kube, namespace, firstSlow+i, nodes)
		return err
	})
	defer func() { err = errors.Join(err, w.deletePods(ctx, firstSlow, patched)) }()
	if err != nil {
		return err
	}
	if err := w.eventually(ctx, "the webhook has all that it lets wait", asked.hasAll); err != nil {
		return err
	}
	if err := w.eventually(ctx, "the other pods have addresses", w.othersServed); err != nil {
		return err
	}
	if again := asked.askedAgain(); again > patched/slowEvery/2 {
		return fmt.Errorf("when the other pods had addresses, the webhook had been asked again about %d pods", again)
	}
	released()
	return nil
}

// wasAsked says that nobody has asked the webhook yet.
func (q *questions) wasAsked(context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked == 0 {
		return "nobody has asked", nil
	}
	return "", nil
}

// hasAll says how many changes the webhook lets wait, if these are not all yet.
func (q *questions) hasAll(context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waits) < patched/slowEvery {
		return fmt.Sprintf("%d wait", len(q.waits)), nil
	}
	return "", nil
}

// askedAgain is how many of the pods that wait it was asked about more than once.
func (q *questions) askedAgain() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, times := range q.waits {
		if times > 1 {
			n++
		}
	}
	return n
}

// othersServed names the pods that have no addresses, although the webhook does not let them wait. Those that it lets
// wait have none.
func (w *world) othersServed(ctx context.Context) (string, error) {
	pods, err := w.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	byName := map[string]*corev1.Pod{}
	for i := range pods.Items {
		byName[pods.Items[i].Name] = &pods.Items[i]
	}
	var waiting []string
	for i := firstSlow; i < firstSlow+patched; i++ {
		name := load.PodName(i)
		has := byName[name] != nil && byName[name].Annotations[load.PodNetworks] != ""
		if has && isSlow(name) {
			return "", fmt.Errorf("pod %s has addresses before the webhook has admitted them", name)
		}
		if !has && !isSlow(name) {
			waiting = append(waiting, name)
		}
	}
	return strings.Join(waiting, " "), nil
}

// deletePods removes n pods from first on.
func (w *world) deletePods(ctx context.Context, first, n int) error {
	return load.Parallel(ctx, n, func(ctx context.Context, i int) error {
		now := int64(0)
		return w.Kube.CoreV1().Pods(namespace).Delete(ctx, load.PodName(first+i),
			metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}
