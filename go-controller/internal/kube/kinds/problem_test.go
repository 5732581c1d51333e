package kinds

import (
	"math"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// Whatever an object's author writes, few Problems are reported of it, and short ones. The last says that there are
// more.
func TestProblemsOfOneObjectAreFew(t *testing.T) {
	const many = 100_000
	p := &networkingv1.NetworkPolicy{}
	p.Name, p.Namespace = "hostile", "shop"
	peers := []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: strings.Repeat("é", many)}}}
	peers = append(peers, make([]networkingv1.NetworkPolicyPeer, many)...)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
	_, problems := NetworkPolicy(config.DefaultPolicies()).Decode(p)
	if len(problems) != mostProblems+1 {
		t.Fatalf("%d problems, want %d", len(problems), mostProblems+1)
	}
	for i, c := range problems {
		if len(c.Message) > mostMessage || c.Message == "" || strings.ToValidUTF8(c.Message, "") != c.Message {
			t.Errorf("problem %d has %d bytes: %.80q", i, len(c.Message), c.Message)
		}
	}
	if last := problems[mostProblems].Message; !strings.Contains(last, "the others are not reported") {
		t.Errorf("the last problem is %q", last)
	}
	f := findings{}
	f.add(make([]cluster.Problem, many))
	if len(f.problems) != mostProblems+1 {
		t.Errorf("%d problems of an annotation, want %d", len(f.problems), mostProblems+1)
	}
}

// An object that was not created yet is the youngest: what it asks for, others have first.
func TestNotCreatedYet(t *testing.T) {
	old := metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1700000000, 0)}
	if got := createdAt(&old); got != 1700000000 {
		t.Errorf("created at %d", got)
	}
	if got := createdAt(&metav1.ObjectMeta{}); got != math.MaxInt64 {
		t.Errorf("without a time of creation: %d", got)
	}
}
