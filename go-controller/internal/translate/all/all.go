// Package all lists the translator rooms: a new feature adds its line here.
package all

import (
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
	"github.com/northbound-net/northbound/go-controller/internal/translate/exit"
	"github.com/northbound-net/northbound/go-controller/internal/translate/namespace"
	"github.com/northbound-net/northbound/go-controller/internal/translate/pod"
	"github.com/northbound-net/northbound/go-controller/internal/translate/policy"
	"github.com/northbound-net/northbound/go-controller/internal/translate/service"
	"github.com/northbound-net/northbound/go-controller/internal/translate/tenant"
	"github.com/northbound-net/northbound/go-controller/internal/translate/topology"
)

// Translators is every translator of the product.
func Translators(s *nb.Schema) translate.Set {
	return translate.NewSet(
		topology.Cluster{Schema: s},
		topology.Zone{Schema: s},
		topology.Node{Schema: s},
		topology.Gateway{Schema: s},
		exit.Translator{Schema: s},
		namespace.Translator{Schema: s},
		tenant.Translator{Schema: s},
		policy.Isolation{Schema: s},
		policy.Selector{Schema: s},
		policy.NetworkPolicy{Schema: s},
		policy.ClusterNetworkPolicy{Schema: s},
		pod.Translator{Schema: s},
		service.Translator{Schema: s},
	)
}
