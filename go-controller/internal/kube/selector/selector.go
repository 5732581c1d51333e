package selector

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// node is a config.NodeSelector.
type node struct{ labels.Selector }

// Accepts implements config.NodeSelector.
func (s node) Accepts(of map[string]string) bool { return s.Matches(labels.Set(of)) }

// ParseNode reads a label selector for Nodes (Kubernetes documentation, "Labels and Selectors"). An empty one is nil.
// what names the flag that it was given with.
func ParseNode(what, s string) (config.NodeSelector, error) {
	if s == "" {
		return nil, nil
	}
	selector, err := labels.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("parsing %s %q: %w: want a label selector such as gateway=true or "+
			"'role in (edge,border),!retired'", what, s, err)
	}
	return node{selector}, nil
}
