package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ServiceHealthCheck is the key of the Service annotation by which a service
// has OVN check its endpoints: a JSON object of the members of HealthCheck, each
// of which may be left out.
const ServiceHealthCheck = "k8s.ovn.org/service-health-check"

// HealthCheck is how often the endpoints of a service are checked, and what
// follows (ovn-nb(5), Load_Balancer_Health_Check options). The zero HealthCheck
// is none.
type HealthCheck struct {
	Interval  int `json:"interval"`  // seconds from one check to the next
	Timeout   int `json:"timeout"`   // seconds after which a check without an answer has failed
	Successes int `json:"successes"` // checks in a row after which an endpoint that was out is in
	Failures  int `json:"failures"`  // checks in a row after which it is out
}

// The limits of a HealthCheck's members.
const (
	maxCheckSeconds = 3600
	maxCheckCount   = 100
)

// defaultHealthCheck is what OVN has for options that are not there.
func defaultHealthCheck() HealthCheck {
	return HealthCheck{Interval: 5, Timeout: 20, Successes: 3, Failures: 3}
}

// healthCheckExample is a value of the annotation.
const healthCheckExample = `{"interval":5,"timeout":20,"successes":3,"failures":3}`

// ParseServiceHealthCheck reads the annotation ServiceHealthCheck. What is left
// out is as OVN has it by default: 5 s, 20 s, 3 and 3.
func ParseServiceHealthCheck(value string) (HealthCheck, error) {
	h, err := readHealthCheck(value)
	if err != nil {
		return HealthCheck{}, refused(ServiceHealthCheck, value, err)
	}
	return h, nil
}

func readHealthCheck(value string) (HealthCheck, error) {
	h := defaultHealthCheck()
	read := &h // nil after null
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
