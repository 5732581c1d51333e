package settings

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// What is published can be read, and only a change is written.
func TestPublish(t *testing.T) {
	kube := fake.NewSimpleClientset()
	if _, err := Read(t.Context(), kube); !errors.Is(err, ErrNotPublished) {
		t.Errorf("error %v, want that nothing is published", err)
	}
	first := config.DefaultCluster().Settings()
	second := maps.Clone(first)
	second["acl-log-rate"], second["router-name"] = "5", "r"
	for _, step := range []struct {
		settings config.Settings
		changed  []string
		writes   int // so far
	}{
		{first, nil, 1}, {first, nil, 1}, {second, []string{"acl-log-rate", "router-name"}, 2},
		{first, []string{"acl-log-rate", "router-name"}, 3}, // a setting that is gone is a change, too
	} {
		changed, err := Publish(t.Context(), kube, step.settings)
		if err != nil || !slices.Equal(changed, step.changed) {
			t.Errorf("changed %v, error %v; want %v", changed, err, step.changed)
		}
		writes := 0
		for _, a := range kube.Actions() {
			if a.GetVerb() != "get" {
				writes++
			}
		}
		if writes != step.writes {
			t.Errorf("%d writes so far, want %d", writes, step.writes)
		}
		if got, err := Read(t.Context(), kube); err != nil || !maps.Equal(got, step.settings) {
			t.Errorf("read %v, error %v; want %v", got, err, step.settings)
		}
	}
}
