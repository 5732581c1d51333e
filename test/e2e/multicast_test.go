package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// multicastPods is two namespaces with a pod on each of two nodes, and a second one on the first node. A policy denies
// those of one namespace everything: policies are not about multicast.
func multicastPods() string {
	var b strings.Builder
	for _, ns := range []string{"video", "audio"} {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", ns)
		for i, node := range []string{"n1", "n1", "n2"} {
			fmt.Fprintf(&b, `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-%[2]d, namespace: %[1]s}
spec:
  nodeName: %[3]s
  terminationGracePeriodSeconds: 0
  containers: [{name: echo, image: %[4]s, imagePullPolicy: IfNotPresent}]
---
`, ns, i, node, image)
		}
	}
	return b.String() + `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: video}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`
}

// heard has the first pod of each namespace send to a group, and returns who received what, such as "video-1: video-0".
func heard(t *testing.T, group string) []string {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[string]string{}
	do := func(ns, name string, args ...string) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			got, err := sandbox(ctx, append([]string{"kubectl", "exec", "-n", ns, name, "--", machines.EchoInPod}, args...)...)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %q: %v", name, args, err)
			}
			if senders := strings.Fields(got); len(senders) > 0 {
				out[name] = name + ": " + strings.Join(senders, " ")
			}
		})
	}
	for _, ns := range []string{"video", "audio"} {
		for i := range 3 {
			do(ns, fmt.Sprintf("%s-%d", ns, i), "listen", group, "3s")
		}
		do(ns, ns+"-0", "cast", group, "3s")
	}
	wg.Wait()
	return slices.Sorted(maps.Values(out))
}

// TestMulticast checks that pods hear multicast of their own namespace only, on the same node and on others, in both
// families, and only while the namespace's annotation says so.
func TestMulticast(t *testing.T) {
	const key = "k8s.ovn.org/multicast-enabled"
	apply(t, multicastPods())
	for _, ns := range []string{"video", "audio"} {
		kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	}
	video, audio := []string{"video-1: video-0", "video-2: video-0"}, []string{"audio-1: audio-0", "audio-2: audio-0"}
	hears := func(what string, want ...string) {
		t.Helper()
		for _, group := range []string{"239.1.2.3:5555", "[ff15::1:2:3]:5555"} {
			eventually(t, what+" of "+group, func() string {
				got := heard(t, group)
				if !slices.Equal(got, want) {
					return fmt.Sprintf("heard %q, want %q", got, want)
				}
				return ""
			})
		}
	}
	hears("nobody without the annotation")
	kubectl(t, "annotate", "namespace", "video", "audio", key+"=true")
	hears("each namespace", slices.Concat(audio, video)...)
	kubectl(t, "annotate", "--overwrite", "namespace", "audio", key+"=false")
	hears("one namespace", video...)
	kubectl(t, "annotate", "namespace", "video", "audio", key+"-")
	hears("nobody any more")
}
