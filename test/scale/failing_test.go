package scale

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/scale/load"
)

// Ports of somebody else have the names of many pods' ports, so that the database refuses those. Other pods are served,
// and /readyz names one of the pods that are not. Once the names are free, these are served, too.
func TestFailing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	b := newBed(t)
	const addr, pods, refused = "127.0.0.1:9411", 60, 40
	theirs := []string{"ls-add", "theirs"}
	for i := range refused {
		theirs = append(theirs, "--", "lsp-add", "theirs", namespace+"_"+load.PodName(i))
	}
	b.nbctl(theirs...)
	m, err := b.StartMasterAt(ctx, addr)
	b.must(err)
	t.Cleanup(func() { b.must(m.Stop()) })
	_, err = m.WaitReady(ctx)
	b.must(err)

	b.create(ctx, 0, pods)
	for i := refused; i < pods; i++ {
		_, err := b.seen.Ported.WaitName(ctx, load.Name{Namespace: namespace, Name: load.PodName(i)})
		b.must(err)
	}
	b.awaits(ctx, "/readyz names a pod that is refused", func() string {
		said := readyz(ctx, addr)
		for i := range refused {
			if strings.HasPrefix(said, "503 Pod "+namespace+"/"+load.PodName(i)+" ") &&
				strings.Contains(said, "is not in the database") {
				return ""
			}
		}
		return said
	})
	if n := b.ports(); n != pods-refused {
		t.Errorf("%d pods have ports, want the %d whose names are free", n, pods-refused)
	}
	b.nbctl("ls-del", "theirs")
	b.awaits(ctx, "ports of all pods, once the names are free", func() string {
		if n := b.ports(); n != pods {
			return fmt.Sprintf("%d pods have ports, want %d", n, pods)
		}
		return ""
	})
	_, err = m.WaitReady(ctx)
	b.must(err)
}
