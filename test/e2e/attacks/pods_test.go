package attacks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// patchPod patches an annotation of a tenant's pod; nil removes it.
func patchPod(ctx context.Context, c kubernetes.Interface, name, key string, value any, sub ...string) error {
	_, err := c.CoreV1().Pods(tenant).Patch(ctx, name, types.MergePatchType,
		marshal(meta("annotations", map[string]any{key: value})), metav1.PatchOptions{}, sub...)
	return err
}

// byAuthors are what a pod's author, and who may bind pods to nodes, must not do.
func (b bed) byAuthors() (all []attempt) {
	const author, binder = "a pod's author", "who binds pods"
	pods := b.author.CoreV1().Pods(tenant)
	for _, key := range []string{podNetworks, classic} {
		all = append(all,
			attempt{fmt.Sprintf("%s makes a Pod with annotation %s", author, key), func(ctx context.Context) error {
				p := pod("with-annotation")
				p.Annotations[key] = "x"
				_, err := pods.Create(ctx, p, metav1.CreateOptions{})
				return err
			}},
			attempt{fmt.Sprintf("%s makes a Pod with an empty annotation %s", author, key), func(ctx context.Context) error {
				p := pod("with-empty-annotation")
				p.Annotations[key] = ""
				_, err := pods.Create(ctx, p, metav1.CreateOptions{})
				return err
			}},
			attempt{fmt.Sprintf("%s changes annotation %s", author, key), func(ctx context.Context) error {
				return patchPod(ctx, b.author, "on-n1", key, "x")
			}},
			attempt{fmt.Sprintf("%s removes annotation %s", author, key), func(ctx context.Context) error {
				return patchPod(ctx, b.author, "on-n1", key, nil)
			}},
			attempt{fmt.Sprintf("%s replaces a Pod without annotation %s", author, key), func(ctx context.Context) error {
				p, err := pods.Get(ctx, "on-n1", metav1.GetOptions{})
				if err != nil {
					return err
				}
				delete(p.Annotations, key)
				_, err = pods.Update(ctx, p, metav1.UpdateOptions{})
				return err
			}},
			attempt{fmt.Sprintf("%s gives a Pod annotation %s with its node", binder, key), func(ctx context.Context) error {
				return b.binder.CoreV1().Pods(tenant).Bind(ctx, &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Name: "unbound", Annotations: map[string]string{key: "x"}},
					Target:     corev1.ObjectReference{Kind: "Node", Name: "n2"},
				}, metav1.CreateOptions{})
			}})
	}
	return append(all,
		attempt{author + " changes a Pod's status", func(ctx context.Context) error {
			return patchPod(ctx, b.author, "on-n1", podNetworks, "x", "status")
		}},
		annotate(author, b.author, "n1", gateway, "x"))
}

// inOrder are requests that must succeed.
func (b bed) inOrder() (all []attempt) {
	for who, c := range map[string]kubernetes.Interface{"n1's agent": b.agent, "n1's agent, by token,": b.bound} {
		for _, key := range ofAgents()[:3] {
			all = append(all, attempt{who + " rewrites its annotation " + key, func(ctx context.Context) error {
				n, err := c.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, value := range []string{n.Annotations[key] + " ", n.Annotations[key]} {
					if err := annotate(who, c, "n1", key, value).do(ctx); err != nil {
						return err
					}
				}
				return nil
			}})
		}
		all = append(all, patchLease(who, c, "kube-node-lease", "ovn-gateway.n1"))
	}
	return append(all,
		annotate("n1's kubelet", b.kubelet, "n1", "example.com/other", "x"),
		annotate("the administrator", b.admin, "n1", "example.com/other", nil),
		attempt{"a pod's author annotates a Pod", func(ctx context.Context) error {
			return patchPod(ctx, b.author, "on-n1", "example.com/other", "x")
		}},
		attempt{"a pod's author makes a Pod", func(ctx context.Context) error {
			_, err := b.author.CoreV1().Pods(tenant).Create(ctx, pod("ordinary"), metav1.CreateOptions{})
			return err
		}},
		attempt{"who binds pods binds one", func(ctx context.Context) error {
			return b.binder.CoreV1().Pods(tenant).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "unbound"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n2"},
			}, metav1.CreateOptions{})
		}},
		attempt{"the administrator takes an annotation away, and the master writes it again",
			func(ctx context.Context) error {
				return patchPod(ctx, b.admin, "on-n1", classic, nil, "status")
			}})
}
