package permissions_test

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

const (
	rolesFile     = "../../../../dist/kubernetes/roles.yaml"
	kindsDir      = "../../../../dist/kubernetes/"
	admissionFile = "../../../../dist/kubernetes/admission.yaml"
	chartFiles    = "../../../../dist/helm/northbound/files/"
)

const rolesHead = `# The rights of ovnkube at the API server, no more than it uses.
# docs/reference/permissions.md says what each right is for.
# Generated: go test ./go-controller/internal/kube/permissions -update
#
# A daemon is known by its certificate or by its ServiceAccount:
#   master: user ovnkube-master, or ServiceAccount ovnkube-master in namespace ovn-kubernetes
#   agent:  user ovnkube-node:NODE of group ovnkube-nodes, or ServiceAccount ovnkube-node in namespace ovn-kubernetes
# admission.yaml, beside this file, restricts an agent to its own Node and its own Lease.
`

// identity is how the API server knows a daemon.
type identity struct {
	name     string
	subjects []rbacv1.Subject
}

func identities() map[kinds.Daemon]identity {
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ovn-kubernetes", Name: name}
	}
	named := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	return map[kinds.Daemon]identity{
		kinds.Master: {"ovnkube-master",
			[]rbacv1.Subject{named(rbacv1.UserKind, "ovnkube-master"), account("ovnkube-master")}},
		kinds.Agent: {"ovnkube-node", []rbacv1.Subject{named(rbacv1.GroupKind, "ovnkube-nodes"), account("ovnkube-node")}},
	}
}

// The manifest gives the daemons the rights that the rows ask for.
func TestRoles(t *testing.T) {
	var b strings.Builder
	b.WriteString(rolesHead)
	for _, d := range []kinds.Daemon{kinds.Master, kinds.Agent} {
		for _, object := range roles(d) {
			raw, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("---\n")
			b.Write(raw)
		}
	}
	compare(t, rolesFile, b.String())
	compare(t, chartFiles+"roles.yaml", b.String())
}

// The chart has a copy of the admission policies.
func TestAdmissionOfTheChart(t *testing.T) {
	raw, err := os.ReadFile(admissionFile)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, chartFiles+"admission.yaml", string(raw))
}

// The chart has a copy of the kinds of networks.
func TestKindsOfTheChart(t *testing.T) {
	for _, file := range []string{"userdefinednetworks.yaml", "ipamclaims.yaml"} {
		raw, err := os.ReadFile(kindsDir + file)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, chartFiles+"../crds/"+file, string(raw))
	}
}

// The admission policies name every annotation that the daemons write.
func TestAdmissionKeys(t *testing.T) {
	raw, err := os.ReadFile(admissionFile)
	if err != nil {
		t.Fatal(err)
	}
	agents, all, ok := strings.Cut(string(raw), "name: ovnkube-annotations")
	if !ok {
		t.Fatal("there is no policy ovnkube-annotations behind that of the agents")
	}
	for key, byAgent := range map[string]bool{
		annotation.NodeChassisID: true, annotation.NodeMgmtPortMAC: true, annotation.NodePrimaryIfAddr: true,
		annotation.NodeAgentReady: true, annotation.L3GatewayConfig: true, annotation.NodePhysicalNetworks: true,
		annotation.NodeSubnets: false, annotation.GatewayJoinAddrs: false,
		annotation.PodNetworks: false, annotation.PodClassic: false,
	} {
		if quoted := "'" + key + "'"; strings.Contains(agents, quoted) != byAgent || !strings.Contains(all, quoted) {
			t.Errorf("annotation %s: want it in the policy ovnkube-annotations, and of agents: %v", key, byAgent)
		}
	}
}

// compare compares a generated file with what the code says, or writes it.
func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the code says; to write it anew:\n"+
			"  go test ./go-controller/internal/kube/permissions -update\nwant:\n%s", file, want)
	}
}

// roles returns a daemon's ClusterRole, and a Role for each namespace that its rules name, with their bindings.
func roles(d kinds.Daemon) (out []any) {
	who := identities()[d]
	rules := map[string][]rbacv1.PolicyRule{}
	namespaces := []string{""}
	for _, r := range rulesOf(kinds.All(), d) {
		if rules[r.Namespace] == nil && r.Namespace != "" {
			namespaces = append(namespaces, r.Namespace)
		}
		made := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs}
		if r.Name != "" {
			made.ResourceNames = []string{r.Name}
		}
		rules[r.Namespace] = append(rules[r.Namespace], made)
	}
	for _, namespace := range namespaces {
		kind, meta := "Role", metav1.ObjectMeta{Name: who.name, Namespace: namespace}
		if namespace == "" {
			kind = "ClusterRole"
		}
		typed := func(kind string) metav1.TypeMeta {
			return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
		}
		// A ClusterRole and its binding have the fields of a Role and its binding that are needed here.
		out = append(out,
			rbacv1.Role{TypeMeta: typed(kind), ObjectMeta: meta, Rules: rules[namespace]},
			rbacv1.RoleBinding{TypeMeta: typed(kind + "Binding"), ObjectMeta: meta, Subjects: who.subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: who.name}})
	}
	return out
}
