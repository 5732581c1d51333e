package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"
)

// ErrNoServer is the error that a Service has no endpoint yet.
var ErrNoServer = errors.New("it has no endpoint: no pod of the database runs, or none has an address of its family")

// Service names a Service of the databases, and the port of one of them.
type Service struct {
	Namespace, Name string
	Port            string // its name: nb or sb
}

// String is NAMESPACE/NAME, as ParseService reads it.
func (s Service) String() string { return s.Namespace + "/" + s.Name }

// ParseService reads NAMESPACE/NAME. flag and port name the flag, in errors, and the port.
func ParseService(flag, text, port string) (Service, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Service{}, fmt.Errorf("--%s %q: want NAMESPACE/NAME of a Service, such as ovn-kubernetes/ovn-db", flag, text)
	}
	return Service{Namespace: namespace, Name: name, Port: port}, nil
}

// Addresses returns the connection method of each endpoint, ssl:HOST:PORT, sorted (ovsdb(7), "Connection Methods").
// Endpoints that are not ready count, too: a database that is about to start keeps its address. The error wraps
// ErrNoServer if there is none. all is false while servers are missing that the Service shall have.
func (s Service) Addresses(ctx context.Context, kube kubernetes.Interface) (out []string, all bool, err error) {
	found, err := s.slices(ctx, kube)
	if err != nil {
		return nil, false, err
	}
	for _, slice := range found {
		out = append(out, s.of(slice)...)
	}
	if len(out) == 0 {
		return nil, false, fmt.Errorf("looking for port %s of Service %s: %w", s.Port, s, ErrNoServer)
	}
	slices.Sort(out)
	return slices.Compact(out), complete(found), nil
}

// of lists the connection methods of one EndpointSlice.
func (s Service) of(slice discoveryv1.EndpointSlice) (out []string) {
	for _, p := range slice.Ports {
		if p.Name == nil || *p.Name != s.Port || p.Port == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			for _, a := range e.Addresses {
				if net.ParseIP(a) != nil { // a slice of host names has none
					out = append(out, "ssl:"+net.JoinHostPort(a, strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	return out
}
