package kubeio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// nodeSelector is a config.NodeSelector.
type nodeSelector struct{ labels.Selector }

// Accepts implements config.NodeSelector.
func (s nodeSelector) Accepts(of map[string]string) bool { return s.Matches(labels.Set(of)) }

// ParseNodeSelector reads a Kubernetes label selector (Kubernetes documentation,
// "Labels and Selectors"); an empty one is nil. what is where it was given.
func ParseNodeSelector(what, s string) (config.NodeSelector, error) {
	if s == "" {
		return nil, nil
	}
	selector, err := labels.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("parsing %s %q: %w: want a label selector such as gateway=true or 'role in (edge,border),!retired'", what, s, err)
	}
	return nodeSelector{selector}, nil
}
