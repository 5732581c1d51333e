package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/scale/ovsdbwire"
)

// PolicyName is the name of the i-th policy of a namespace.
func PolicyName(i int) string { return fmt.Sprintf("policy-%05d", i) }

// Policy is a policy that isolates pods of a namespace, by their labels. It lets other pods of the namespace connect to
// one port, by which its flows are told apart.
type Policy struct {
	Namespace     string
	Number        int
	Pods, Clients map[string]string
	Port          int
}

// object is the policy as the API server takes it.
func (p Policy) object() *networkingv1.NetworkPolicy {
	tcp, port := corev1.ProtocolTCP, intstr.FromInt(p.Port)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: PolicyName(p.Number)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: p.Pods},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: p.Clients}}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
			}},
		},
	}
}

// CreatePolicy makes a policy, and returns when the request was sent and when it was answered.
func CreatePolicy(ctx context.Context, kube kubernetes.Interface, p Policy) (sent, answered time.Time, err error) {
	sent = time.Now()
	_, err = kube.NetworkingV1().NetworkPolicies(p.Namespace).Create(ctx, p.object(), metav1.CreateOptions{})
	if err != nil {
		return sent, sent, fmt.Errorf("making a policy: %w", err)
	}
	return sent, time.Now(), nil
}

// UpdatePolicy replaces the policy of the same namespace and number.
func UpdatePolicy(ctx context.Context, kube kubernetes.Interface, p Policy) error {
	_, err := kube.NetworkingV1().NetworkPolicies(p.Namespace).Update(ctx, p.object(), metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("changing a policy: %w", err)
	}
	return nil
}

// DeletePolicy deletes the policy of a namespace that has the number.
func DeletePolicy(ctx context.Context, kube kubernetes.Interface, namespace string, number int) error {
	err := kube.NetworkingV1().NetworkPolicies(namespace).Delete(ctx, PolicyName(number), metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("deleting a policy: %w", err)
	}
	return nil
}

// CreatePolicies makes policies, and returns when it started.
func CreatePolicies(ctx context.Context, kube kubernetes.Interface, policies []Policy) (began time.Time, err error) {
	began = time.Now()
	return began, Parallel(ctx, len(policies), func(ctx context.Context, i int) error {
		_, _, err := CreatePolicy(ctx, kube, policies[i])
		return err
	})
}

// DeletePolicies removes the policies of namespaces.
func DeletePolicies(ctx context.Context, kube kubernetes.Interface, namespaces []string) error {
	return Parallel(ctx, len(namespaces), func(ctx context.Context, i int) error {
		if err := kube.NetworkingV1().NetworkPolicies(namespaces[i]).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}); err != nil {
			return fmt.Errorf("removing policies: %w", err)
		}
		return nil
	})
}

// PolicyObserver watches policies get their ACLs, and pods become isolated.
type PolicyObserver struct {
	Written  *Tracker     // policies that have an ACL
	Isolated *Tracker     // logical ports in groups of isolated pods, by their UUIDs, all of one nameless namespace
	ACLs     atomic.Int64 // of policies, now

	acls, groups *ovsdbwire.Client
	names        map[string]Name // UUID of the ACL -> policy
	isolates     map[string]bool // UUIDs of groups of isolated pods
}

// ObservePolicies starts to watch all ACLs and port groups of the database at nbSocket.
func ObservePolicies(nbSocket string) (*PolicyObserver, error) {
	o := &PolicyObserver{Written: NewTracker("the ACLs"), Isolated: NewTracker("the groups of isolated pods"),
		names: map[string]Name{}, isolates: map[string]bool{}}
	var err error
	if o.acls, err = o.watch(nbSocket, "ACL", []string{"external_ids"}, o.seeACLs); err != nil {
		return nil, err
	}
	if o.groups, err = o.watch(nbSocket, "Port_Group", []string{"name", "ports"}, o.seeGroups); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *PolicyObserver) watch(nbSocket, table string, columns []string,
	rows func(string, map[string]ovsdbwire.RowUpdate)) (*ovsdbwire.Client, error) {
	wire, err := ovsdbwire.Dial(nbSocket)
	if err != nil {
		return nil, err
	}
	if err := wire.Monitor(database, table, columns, rows); err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	go func() {
		<-wire.Ended()
		o.fail(fmt.Errorf("watching %s: the connection to ovsdb-server ended", table))
	}()
	return wire, nil
}

func (o *PolicyObserver) fail(err error) {
	o.Written.Fail(err)
	o.Isolated.Fail(err)
}

// Close stops watching.
func (o *PolicyObserver) Close() error {
	var errs []error
	for _, c := range []*ovsdbwire.Client{o.acls, o.groups} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// seeACLs handles new and removed ACLs. Those of policies name their owner.
func (o *PolicyObserver) seeACLs(_ string, rows map[string]ovsdbwire.RowUpdate) {
	var seen []Name
	for uuid, u := range rows {
		if _, known := o.names[uuid]; u.Content() == nil && known {
			delete(o.names, uuid)
			o.ACLs.Add(-1)
		}
		raw := u.New()
		if raw == nil {
			continue
		}
		var row struct {
			ExternalIDs [2]json.RawMessage `json:"external_ids"` // "map", [[key, value], ...]
		}
		var ids [][2]string
		if json.Unmarshal(raw, &row) != nil || json.Unmarshal(row.ExternalIDs[1], &ids) != nil {
			continue // without external_ids of this form, it is not a policy's
		}
		of := map[string]string{}
		for _, id := range ids {
			of[id[0]] = id[1]
		}
		namespace, name, ok := strings.Cut(of["k8s.ovn.org/owner-name"], "/")
		if ok && of["k8s.ovn.org/owner-type"] == "NetworkPolicy" {
			o.names[uuid] = Name{namespace, name}
			o.ACLs.Add(1)
			seen = append(seen, o.names[uuid])
		}
	}
	o.Written.See(seen...)
}

// isolating begins the names of the groups of a node's isolated pods.
const isolating = "iso_in_"

// seeGroups handles new and changed port groups.
func (o *PolicyObserver) seeGroups(_ string, rows map[string]ovsdbwire.RowUpdate) {
	var seen []Name
	for uuid, u := range rows {
		raw := u.Content()
		if raw == nil {
			continue
		}
		var row struct {
			Name  string
			Ports [2]json.RawMessage // "set", [["uuid", UUID], ...]; or "uuid", UUID
		}
		if err := json.Unmarshal(raw, &row); err != nil {
			o.fail(fmt.Errorf("reading a port group: %w", err))
			return
		}
		if strings.HasPrefix(row.Name, isolating) {
			o.isolates[uuid] = true
		}
		if !o.isolates[uuid] {
			continue
		}
		for _, port := range uuids(row.Ports) {
			seen = append(seen, Name{Name: port})
		}
	}
	o.Isolated.See(seen...)
}

// uuids reads a set of UUIDs, or one UUID.
func uuids(value [2]json.RawMessage) (out []string) {
	var one string
	var many [][2]string
	switch {
	case json.Unmarshal(value[1], &many) == nil:
		for _, u := range many {
			out = append(out, u[1])
		}
	case json.Unmarshal(value[1], &one) == nil:
		out = append(out, one)
	}
	return out
}
