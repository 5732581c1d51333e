package kubeio

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Lease is made, and then renewed; whatever somebody did to it is put right.
func TestRenewLease(t *testing.T) {
	l, client := startLocal(t)
	for _, ok := l.Node(); !ok; _, ok = l.Node() {
		<-l.Changed()
	}
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		now := start.Add(time.Duration(i) * time.Second)
		if err := l.renewLease(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		got, err := leases.Get(t.Context(), "ovn-gateway.n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Spec.RenewTime.Time.Equal(now) || *got.Spec.LeaseDurationSeconds != 15 || *got.Spec.HolderIdentity != "n1" || got.Labels["k8s.ovn.org/lease"] != "gateway" ||
			len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != "node-uid" || got.OwnerReferences[0].Kind != "Node" {
			t.Errorf("lease %+v", got)
		}
		got.Labels, got.Spec.LeaseDurationSeconds = nil, nil
		if _, err := leases.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ok := l.Node(); ok; _, ok = l.Node() {
		<-l.Changed()
	}
	if err := l.renewLease(t.Context(), start); err == nil || !strings.Contains(err.Error(), `there is no Node "n1"`) {
		t.Errorf("without a Node: %v", err)
	}
}
