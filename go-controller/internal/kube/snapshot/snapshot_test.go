package snapshot

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
)

// password is in each part of a pod that somebody may have put one into.
const password = "hunter2"

func aPod() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	secret := []corev1.EnvVar{{Name: "PASSWORD", Value: password}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID("u"),
			Labels:            map[string]string{"app": "web"},
			CreationTimestamp: metav1.Unix(1700000000, 0),
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": password, "vault/token": password,
				"kubernetes.io/egress-bandwidth": "10M", "ovn": "{}",
				"k8s.ovn.org/pod-networks": `{"default":{"ip_addresses":["10.0.0.3/24"],"mac_address":"0a:58:0a:00:00:03"}}`},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: password}}},
		Spec: corev1.PodSpec{NodeName: "n1", Hostname: password, ServiceAccountName: password,
			Volumes: []corev1.Volume{{Name: password}},
			Containers: []corev1.Container{{Name: "c", Image: password, Args: []string{password}, Command: []string{password},
				Env: secret, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}},
			InitContainers: []corev1.Container{{Name: "i", Env: secret, RestartPolicy: &always,
				Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: password},
	}
}

// A reduced object is the same to the network as the whole one, and has no more.
func TestReduced(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Annotations: map[string]string{"k8s.ovn.org/node-chassis-id": "c"}},
		Spec: corev1.NodeSpec{ProviderID: password}, Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:     []corev1.ContainerImage{{Names: []string{password}}}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
		Annotations: map[string]string{
			"cloud.example/token": password, "k8s.ovn.org/service-health-check": "{}"}},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}}}
	for kind, whole := range map[cluster.Kind]kinds.Object{
		cluster.KindPod: aPod(), cluster.KindNode: node, cluster.KindService: service,
	} {
		k, ok := kinds.Find(kinds.All(), kind)
		if !ok {
			t.Fatalf("no kind %s", kind)
		}
		small, err := reduced(k, whole)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(small)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), password) {
			t.Errorf("%s: the password is in %s", kind, raw)
		}
		again := k.New()
		if err := json.Unmarshal(raw, again); err != nil {
			t.Fatal(err)
		}
		before, problems := k.Decode(whole)
		after, problemsAfter := k.Decode(again)
		if !before.Equal(after) || len(problems) != len(problemsAfter) {
			t.Errorf("%s: decoded\n%+v %v\nthe reduced one\n%+v %v", kind, before, problems, after, problemsAfter)
		}
	}
}

// No kind has a field that nobody has decided about.
func TestEveryFieldIsKept(t *testing.T) {
	for _, k := range kinds.All() {
		typ := reflect.TypeOf(k.New()).Elem()
		if typ == reflect.TypeOf(unstructured.Unstructured{}) {
			continue // their schemas have spec and status alone
		}
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if field != "" && field != "metadata" && !slices.Contains(kept(), field) {
				t.Errorf("%s: field %s is left out", k.Kind, field)
			}
		}
	}
}

// Every annotation of the reference is kept.
func TestAnnotations(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^## (\S+)$`).FindAllStringSubmatch(string(page), -1)
	if len(found) < 10 {
		t.Fatalf("annotations %v, want more", found)
	}
	for _, key := range found {
		if !network(key[1]) {
			t.Errorf("annotation %s is left out", key[1])
		}
	}
}

func TestSettings(t *testing.T) {
	const good = `{"apiVersion":"v1","kind":"ConfigMap",` +
		`"metadata":{"name":"northbound-settings","namespace":"kube-system"},"data":{"mtu":"1400"}}`
	if got := Settings([]byte(good)); got["mtu"] != "1400" {
		t.Errorf("settings %v", got)
	}
	for _, change := range [][2]string{{"ConfigMap", "Secret"}, {"northbound-settings", "other"}, {"kube-system", "shop"},
		{"{", "["}} {
		if got := Settings([]byte(strings.Replace(good, change[0], change[1], 1))); got != nil {
			t.Errorf("with %s: %v", change[1], got)
		}
	}
}
