package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

// The annotations that a pod with a network has.
const (
	PodNetworks = "k8s.ovn.org/pod-networks"
	PodClassic  = "ovn"
)

const (
	database  = "OVN_Northbound"
	portTable = "Logical_Switch_Port"
)

// Observer watches pods get their network, as a node does.
type Observer struct {
	Annotated *Tracker // pods that have both annotations
	Ported    *Tracker // pods whose logical switch port exists

	wire *ovsdbwire.Client
	stop context.CancelFunc
	done sync.WaitGroup
}

// Observe starts to watch all pods, and all ports of the database at nbSocket.
func Observe(ctx context.Context, kube kubernetes.Interface, nbSocket string) (*Observer, error) {
	o := &Observer{Annotated: NewTracker("the annotations"), Ported: NewTracker("the Northbound port")}
	ctx, o.stop = context.WithCancel(ctx)
	list, err := kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		o.stop()
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range list.Items {
		o.pod(&list.Items[i])
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return kube.CoreV1().Pods("").Watch(ctx, opts)
		}})
	if err != nil {
		o.stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	o.done.Go(func() { o.follow(ctx, watcher) })
	if o.wire, err = ovsdbwire.Dial(nbSocket); err != nil {
		o.Close()
		return nil, err
	}
	if err := o.wire.Monitor(database, portTable, []string{"name"}, o.ports); err != nil {
		o.Close()
		return nil, err
	}
	o.done.Go(func() {
		select {
		case <-ctx.Done():
		case <-o.wire.Ended():
			o.fail(errors.New("watching ports: the connection to ovsdb-server ended"))
		}
	})
	return o, nil
}

// Close stops watching.
func (o *Observer) Close() {
	o.stop()
	if o.wire != nil {
		_ = o.wire.Close() // nothing is written through it
	}
	o.done.Wait()
}

// follow handles the events of pods.
func (o *Observer) follow(ctx context.Context, w watch.Interface) {
	for e := range w.ResultChan() {
		switch obj := e.Object.(type) {
		case *corev1.Pod:
			o.pod(obj)
		case *metav1.Status:
			o.fail(fmt.Errorf("watching pods: %w", apierrors.FromObject(obj)))
			return
		}
	}
	if ctx.Err() == nil {
		o.fail(errors.New("watching pods: the watch ended"))
	}
}

func (o *Observer) fail(err error) {
	o.Annotated.Fail(err)
	o.Ported.Fail(err)
}

func (o *Observer) pod(p *corev1.Pod) {
	if p.Annotations[PodNetworks] != "" && p.Annotations[PodClassic] != "" {
		o.Annotated.See(Name{p.Namespace, p.Name})
	}
}

// ports handles new ports. Those of pods have names <namespace>_<pod>; a namespace has no underscore (RFC 1123 label).
func (o *Observer) ports(_ string, rows map[string]ovsdbwire.RowUpdate) {
	var names []Name
	for _, u := range rows {
		raw := u.New()
		if raw == nil {
			continue
		}
		var row struct{ Name string }
		if err := json.Unmarshal(raw, &row); err != nil {
			o.fail(fmt.Errorf("reading a port: %w", err))
			return
		}
		if ns, name, ok := strings.Cut(row.Name, "_"); ok {
			names = append(names, Name{ns, name})
		}
	}
	o.Ported.See(names...)
}
