package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/dbserver"
	"github.com/northbound-net/northbound/go-controller/internal/kube/certificates"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/database"
	"github.com/northbound-net/northbound/go-controller/internal/kube/lease"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
)

// Cluster is an API server to clean up.
type Cluster struct {
	Clients   *client.Clients
	Election  config.LeaderElection // whose Lease the masters held
	Namespace string                // of the authorities' Secrets and ConfigMaps
	DryRun    bool                  // only print
	Out       io.Writer             // gets a line for each change
}

// Run cleans up, prints what it changes, and goes on after a failure. It changes nothing while a master leads, since
// that would put everything back.
func (c Cluster) Run(ctx context.Context) error {
	if err := c.refuseMaster(ctx); err != nil {
		return err
	}
	var errs []error
	count := 0
	for _, part := range []func(context.Context) (int, error){
		c.nodes, c.conditions, c.pods, c.networks, c.leases, c.requests, c.objects,
	} {
		n, err := part(ctx)
		count += n
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if count == 0 {
		fmt.Fprintln(c.Out, "Nothing to clean up.")
	}
	return nil
}

// refuseMaster is the error that a master leads.
func (c Cluster) refuseMaster(ctx context.Context) error {
	e := c.Election
	l, err := c.Clients.Kube.CoordinationV1().Leases(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Lease %s/%s of the masters: %w", e.Namespace, e.Name, err)
	}
	if holder := holds(l.Spec, time.Now()); holder != "" {
		return fmt.Errorf("master %s leads: stop the masters first; one that was killed still holds its Lease %s/%s "+
			"for up to %d s", holder, e.Namespace, e.Name, *l.Spec.LeaseDurationSeconds)
	}
	return nil
}

// holds is who holds a Lease that has not run out, "" for nobody.
func holds(s coordinationv1.LeaseSpec, now time.Time) string {
	if s.HolderIdentity == nil || s.RenewTime == nil || s.LeaseDurationSeconds == nil ||
		now.After(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second)) {
		return ""
	}
	return *s.HolderIdentity
}

// nodeKeys are the annotations of Nodes that masters and agents write.
func nodeKeys() []string {
	return []string{annotation.NodeSubnets, annotation.NodeChassisID, annotation.NodeMgmtPortMAC,
		annotation.NodePrimaryIfAddr, annotation.NodeAgentReady, annotation.NodePhysicalNetworks,
		annotation.L3GatewayConfig, annotation.GatewayJoinAddrs}
}

func (c Cluster) nodes(ctx context.Context) (int, error) {
	nodes := c.Clients.Kube.CoreV1().Nodes()
	return c.unannotate(ctx, "Node",
		func(o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		func(annotations map[string]string) []string { return present(annotations, nodeKeys()...) },
		func(o metav1.Object, patch []byte) error {
			_, err := nodes.Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
}

// conditions removes the condition that a master has written into Nodes.
func (c Cluster) conditions(ctx context.Context) (count int, err error) {
	nodes, own := c.Clients.Kube.CoreV1().Nodes(), cluster.NodeAvailable()
	list := func(o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) }
	body := []byte(fmt.Sprintf(`{"status":{"conditions":[{"$patch":"delete","type":%q}]}}`, own.Type))
	var errs []error
	err = pager.New(pager.SimplePageFunc(list)).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		n, ok := o.(*corev1.Node)
		if !ok || !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return string(c.Type) == own.Type && c.Reason == own.Reason
		}) {
			return nil
		}
		count++
		errs = append(errs, c.change("Node "+n.Name+": condition "+own.Type, func() error {
			_, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
			return err
		}))
		return nil
	})
	if err != nil {
		err = fmt.Errorf("listing Nodes: %w", err)
	}
	return count, errors.Join(append(errs, err)...)
}

func (c Cluster) pods(ctx context.Context) (int, error) {
	pods := c.Clients.Kube.CoreV1().Pods
	return c.unannotate(ctx, "Pod",
		func(o metav1.ListOptions) (runtime.Object, error) { return pods("").List(ctx, o) },
		podKeys,
		func(o metav1.Object, patch []byte) error {
			_, err := pods(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
}

// podKeys are the annotations that the master has written. It writes both: the classic one alone is somebody else's.
func podKeys(annotations map[string]string) []string {
	if _, ours := annotations[annotation.PodNetworks]; !ours {
		return nil
	}
	return present(annotations, annotation.PodNetworks, annotation.PodClassic)
}

// present are those of the keys that there are.
func present(annotations map[string]string, keys ...string) []string {
	return slices.DeleteFunc(keys, func(k string) bool {
		_, there := annotations[k]
		return !there
	})
}

// unannotate removes annotations of all objects of a kind. ours tells which of an object's annotations these are.
func (c Cluster) unannotate(ctx context.Context, kind string,
	list func(metav1.ListOptions) (runtime.Object, error), ours func(annotations map[string]string) []string,
	patch func(metav1.Object, []byte) error,
) (count int, err error) {
	var errs []error
	err = pager.New(pager.SimplePageFunc(list)).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		item, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		keys := ours(item.GetAnnotations())
		if len(keys) == 0 {
			return nil
		}
		count++
		name := strings.TrimPrefix(item.GetNamespace()+"/"+item.GetName(), "/")
		errs = append(errs, c.change(fmt.Sprintf("%s %s: %s", kind, name, strings.Join(keys, ", ")), func() error {
			body, err := withoutAnnotations(keys)
			if err != nil {
				return err
			}
			return patch(item, body)
		}))
		return nil
	})
	if err != nil {
		err = fmt.Errorf("listing %ss: %w", kind, err)
	}
	return count, errors.Join(append(errs, err)...)
}

// withoutAnnotations is a merge patch (RFC 7386): null removes a key.
func withoutAnnotations(keys []string) ([]byte, error) {
	gone := map[string]any{}
	for _, k := range keys {
		gone[k] = nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": gone}})
}

// leases removes the Leases of gateways, and that of the masters.
func (c Cluster) leases(ctx context.Context) (count int, err error) {
	api := c.Clients.Kube.CoordinationV1()
	list, err := api.Leases(lease.Namespace).List(ctx, metav1.ListOptions{LabelSelector: lease.Selector()})
	if err != nil {
		return 0, fmt.Errorf("listing Leases of %s: %w", lease.Namespace, err)
	}
	var errs []error
	for _, l := range list.Items {
		count++
		errs = append(errs, c.change("Lease "+l.Namespace+"/"+l.Name, func() error {
			return api.Leases(l.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{})
		}))
	}
	e := c.Election
	n, err := c.object(ctx, "Lease", e.Namespace, e.Name, errorOf(api.Leases(e.Namespace).Get),
		api.Leases(e.Namespace).Delete)
	return count + n, errors.Join(append(errs, err)...)
}

// requests removes the requests for certificates of the authorities.
func (c Cluster) requests(ctx context.Context) (count int, err error) {
	api := c.Clients.Kube.CertificatesV1().CertificateSigningRequests()
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing CertificateSigningRequests: %w", err)
	}
	var errs []error
	for _, r := range list.Items {
		if !slices.Contains(certificates.SignerNames(), r.Spec.SignerName) {
			continue
		}
		count++
		errs = append(errs, c.change("CertificateSigningRequest "+r.Name, func() error {
			return api.Delete(ctx, r.Name, metav1.DeleteOptions{})
		}))
	}
	return count, errors.Join(errs...)
}

// objects removes the settings, the authorities, and what the databases' servers have recorded.
func (c Cluster) objects(ctx context.Context) (count int, err error) {
	api := c.Clients.Kube.CoreV1()
	maps, secrets := api.ConfigMaps(c.Namespace), api.Secrets(c.Namespace)
	published := api.ConfigMaps(settings.Namespace)
	var errs []error
	add := func(n int, err error) { count, errs = count+n, append(errs, err) }
	add(c.object(ctx, "ConfigMap", settings.Namespace, settings.Name, errorOf(published.Get), published.Delete))
	for _, name := range certificates.ObjectNames() {
		add(c.object(ctx, "ConfigMap", c.Namespace, name, errorOf(maps.Get), maps.Delete))
		add(c.object(ctx, "Secret", c.Namespace, name, errorOf(secrets.Get), secrets.Delete))
	}
	for _, d := range dbserver.Databases() {
		add(c.object(ctx, "ConfigMap", c.Namespace, database.RecordName(d), errorOf(maps.Get), maps.Delete))
	}
	return count, errors.Join(errs...)
}

// errorOf is a method Get of an API of which only the error matters.
func errorOf[T any](
	get func(context.Context, string, metav1.GetOptions) (T, error),
) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// object removes an object if it is there.
func (c Cluster) object(ctx context.Context, kind, namespace, name string, get func(context.Context, string) error,
	remove func(context.Context, string, metav1.DeleteOptions) error,
) (int, error) {
	err := get(ctx, name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading %s %s/%s: %w", kind, namespace, name, err)
	}
	return 1, c.change(kind+" "+namespace+"/"+name, func() error { return remove(ctx, name, metav1.DeleteOptions{}) })
}

// change prints a removal and does it. What is gone already needs none.
func (c Cluster) change(what string, do func() error) error {
	fmt.Fprintln(c.Out, "- "+what)
	if c.DryRun {
		return nil
	}
	if err := do(); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing %s: %w", what, err)
	}
	return nil
}
