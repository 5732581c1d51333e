package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy has the API server record the requests of ovnkube's identities, when they have been answered or, for a
// watch, when the answer has begun.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + masterUser + `]
- level: Metadata
  userGroups: [` + agentGroup + `, "` + accounts + `"]
`

// accounts is the group of the ServiceAccounts of the chart, and agentAccount one of them.
const (
	accounts     = "system:serviceaccounts:ovn-kubernetes"
	agentAccount = "system:serviceaccount:ovn-kubernetes:ovnkube-node"
)

func (c *Control) auditLog() string { return filepath.Join(c.Dir(), "audit.log") }

// auditFlags writes the audit policy, and returns the flags of sandbox-apiserver that enable it.
func (c *Control) auditFlags() ([]string, error) {
	file := filepath.Join(c.Dir(), "audit-policy.yaml")
	if err := os.WriteFile(file, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{
		"--apiserver-arg", "--audit-policy-file=" + file, "--apiserver-arg", "--audit-log-path=" + c.auditLog(),
	}, nil
}

// daemons are the user agents of the master, the node agent, and the programs that sign and request certificates.
func daemons() []string {
	return []string{"northbound-master", "ovnkube-node", "ovnkube-signer", "ovnkube-certificates"}
}

// Request is what a daemon of ovnkube asked of the API server, without the object's name.
type Request struct {
	Agent     bool // or the master
	Verb      string
	Group     string
	Resource  string // with its subresource
	Namespace string // "" for all, and for objects without one
}

// Audited returns the requests of ovnkube's daemons, and those that were refused with status 403 for lack of rights.
// (In a namespace that is being deleted nobody can make an Event: such refusals do not count.) Requests about the API
// server itself, such as its version, are left out, and requests by other programs with a daemon's identity.
func (c *Control) Audited() (asked, refused map[Request]int, err error) {
	f, err := os.Open(c.auditLog())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	asked, refused = map[Request]int{}, map[Request]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("reading a line of the audit log: %w", err)
		}
		if e.ObjectRef == nil || !slices.Contains(daemons(), e.UserAgent) {
			continue
		}
		r := Request{
			Agent: slices.Contains(e.User.Groups, agentGroup) || e.User.Username == agentAccount, Verb: e.Verb,
			Group:    e.ObjectRef.APIGroup,
			Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace,
		}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		asked[r]++
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 && !beingTerminated(e.ResponseStatus) {
			refused[r]++
		}
	}
	return asked, refused, lines.Err()
}

// beingTerminated tells whether a request was refused since its namespace is being deleted.
func beingTerminated(s *metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == corev1.NamespaceTerminatingCause
	})
}
