package config

import (
	"errors"
	"fmt"
	"net/netip"
)

// Services bounds what one Service may ask for, and all Services of a namespace together, so that they cost nobody but
// their owner. The master and the nodes must agree on it.
type Services struct {
	MaxVIPs          int            // addresses x ports of a Service; 0 for no limit
	MaxNamespaceVIPs int            // addresses x ports of all Services of a namespace; 0 for no limit
	MaxEndpoints     int            // of a Service in one address family; 0 for no limit
	ExternalCIDRs    []netip.Prefix // where external addresses may be; none for anywhere
}

// DefaultServices has the default limits.
func DefaultServices() Services {
	return Services{MaxVIPs: 4096, MaxNamespaceVIPs: 16384, MaxEndpoints: 10000}
}

// Validate returns an error for everything that is wrong, with the flag's name.
func (s Services) Validate() error {
	d := DefaultServices()
	return validateLimits(limit{"--max-service-vips", s.MaxVIPs, d.MaxVIPs},
		limit{"--max-namespace-vips", s.MaxNamespaceVIPs, d.MaxNamespaceVIPs},
		limit{"--max-service-endpoints", s.MaxEndpoints, d.MaxEndpoints})
}

// limit is the value of a flag that 0 turns off, and an example of one.
type limit struct {
	flag           string
	value, example int
}

func validateLimits(limits ...limit) error {
	var errs []error
	for _, l := range limits {
		if l.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d: want a number such as %d, or 0 for no limit", l.flag, l.value,
				l.example))
		}
	}
	return errors.Join(errs...)
}
