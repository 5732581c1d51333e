package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ServiceHealthCheck is the key of the Service annotation that makes OVN check the service's endpoints. Its value is a
// JSON object with members of HealthCheck, all optional.
const ServiceHealthCheck = "k8s.ovn.org/service-health-check"

// HealthCheck configures the health checks of a service's endpoints (ovn-nb(5), Load_Balancer_Health_Check options).
// The zero HealthCheck means no checks.
type HealthCheck struct {
	Interval  int `json:"interval"`  // seconds between checks
	Timeout   int `json:"timeout"`   // seconds after which a check without an answer has failed
	Successes int `json:"successes"` // successful checks in a row that bring an endpoint back into service
	Failures  int `json:"failures"`  // failed checks in a row that take an endpoint out of service
}

// The limits of a HealthCheck's members.
const (
	maxCheckSeconds = 3600
	maxCheckCount   = 100
)

// defaultHealthCheck has OVN's defaults.
func defaultHealthCheck() HealthCheck {
	return HealthCheck{Interval: 5, Timeout: 20, Successes: 3, Failures: 3}
}

// healthCheckExample is a value of the annotation, for errors.
const healthCheckExample = `{"interval":5,"timeout":20,"successes":3,"failures":3}`

// ParseServiceHealthCheck reads the annotation ServiceHealthCheck. Missing members take OVN's defaults: 5 s, 20 s, 3
// and 3.
func ParseServiceHealthCheck(value string) (HealthCheck, error) {
	return parse(ServiceHealthCheck, value, readHealthCheck)
}

func readHealthCheck(value string) (HealthCheck, error) {
	h := defaultHealthCheck()
	read := &h // decoding a JSON null sets it to nil
	d := json.NewDecoder(strings.NewReader(value))
	d.DisallowUnknownFields()
	switch err := d.Decode(&read); {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return h, fmt.Errorf("not JSON, want such as %s", healthCheckExample)
	case err != nil:
		return h, malformed(err, healthCheckExample)
	case read == nil:
		return h, fmt.Errorf("JSON of another form (null out of place), want such as %s", healthCheckExample)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("something after the JSON object, want such as %s", healthCheckExample)
	}
	for _, m := range []struct {
		name       string
		value, max int
	}{
		{"interval", h.Interval, maxCheckSeconds}, {"timeout", h.Timeout, maxCheckSeconds},
		{"successes", h.Successes, maxCheckCount}, {"failures", h.Failures, maxCheckCount},
	} {
		if m.value < 1 || m.value > m.max {
			return h, fmt.Errorf("%s is %d, want 1 to %d", m.name, m.value, m.max)
		}
	}
	return h, nil
}
