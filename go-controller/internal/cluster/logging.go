package cluster

// Severity is how urgent a line of the log is (ovn-nb(5), ACL severity); "" logs nothing.
type Severity string

// The severities, the most urgent first.
const (
	SeverityAlert   Severity = "alert"
	SeverityWarning Severity = "warning"
	SeverityNotice  Severity = "notice"
	SeverityInfo    Severity = "info"
	SeverityDebug   Severity = "debug"
)

// Severities lists them.
func Severities() []Severity {
	return []Severity{SeverityAlert, SeverityWarning, SeverityNotice, SeverityInfo, SeverityDebug}
}

// Logging says with which severity packets are logged that policies allow, deny or pass on to the next tier.
type Logging struct{ Allow, Deny, Pass Severity }

// Any is true when anything is logged.
func (l Logging) Any() bool { return l != Logging{} }

// Of is the severity for an action of a rule.
func (l Logging) Of(a PolicyAction) Severity {
	switch a {
	case Deny:
		return l.Deny
	case Pass:
		return l.Pass
	}
	return l.Allow
}
