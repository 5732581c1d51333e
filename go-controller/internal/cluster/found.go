package cluster

import (
	"maps"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
)

// Found is the annotations that a master writes as an object has them, letter by letter. A patch names them, so that a
// master that lags behind can't overwrite what another wrote.
type Found struct {
	Bare   bool // the object has no annotation at all, of whatever key
	Values map[string]string
}

// NewFound is what an object's annotations have of these keys.
func NewFound(annotations map[string]string, keys ...string) Found {
	f := Found{Bare: len(annotations) == 0}
	for _, k := range keys {
		if v, ok := annotations[k]; ok {
			if f.Values == nil {
				f.Values = map[string]string{}
			}
			f.Values[k] = v
		}
	}
	return f
}

// Equal is true when g says the same.
func (f Found) Equal(g Found) bool { return f.Bare == g.Bare && maps.Equal(f.Values, g.Values) }

// FoundNow is what the pod's annotations are. Found leaves out those that follow from Annotated, since most pods have
// them.
func (p *Pod) FoundNow() Found {
	if !p.ClassicOK || len(p.Found.Values) > 0 {
		return p.Found
	}
	own, err := annotation.ParsePodNetworks(p.Annotated)
	if err != nil {
		return p.Found
	}
	return Found{Values: map[string]string{
		annotation.PodNetworks: p.Annotated,
		annotation.PodClassic:  annotation.MarshalPodClassic(own),
	}}
}
