package cluster

import "fmt"

// Problem is something wrong with a user's object. It becomes a Kubernetes Event and a log line, and stops nothing
// else.
type Problem struct {
	Ref     Ref
	UID     string
	Reason  string // CamelCase, as in a Kubernetes Event
	Message string // names the field, the value and what would be right
}

// Error implements error.
func (p Problem) Error() string { return fmt.Sprintf("%s: %s: %s", p.Ref, p.Reason, p.Message) }
