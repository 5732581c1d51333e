package kinds

import (
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// findings collects what is wrong with one object.
type findings struct {
	ref      cluster.Ref
	uid      string
	problems []cluster.Problem
}

func findingsOf(kind cluster.Kind, m metav1.Object) findings {
	return findings{ref: cluster.Ref{Kind: kind, Name: NameOf(m)}, uid: string(m.GetUID())}
}

// NameOf is the name of an object.
func NameOf(m metav1.Object) cluster.Name {
	return cluster.Name{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// createdAt is when an object was created, in Unix seconds. One that the API server has not seen is younger than all
// others.
func createdAt(m metav1.Object) int64 {
	if t := m.GetCreationTimestamp(); !t.IsZero() {
		return t.Unix()
	}
	return math.MaxInt64
}

// mostProblems is how many are reported of one object. Its author decides how much is wrong with it, and each Problem
// is an Event and a line of the log.
const mostProblems = 16

// mostMessage is how many bytes the message of an Event may have (Kubernetes API, events.k8s.io/v1, "note").
const mostMessage = 1024

// Brief is a message that fits into an Event. One that is cut ends with dots.
func Brief(message string) string {
	const dots = "..."
	if len(message) <= mostMessage {
		return message
	}
	return strings.ToValidUTF8(message[:mostMessage-len(dots)], "") + dots
}

// bad notes a Problem. The message names the field, its value, what would be right, and what follows.
func (f *findings) bad(reason, format string, args ...any) {
	if f.full(reason) {
		return
	}
	f.problems = append(f.problems, cluster.Problem{Ref: f.ref, UID: f.uid, Reason: reason,
		Message: Brief(fmt.Sprintf(format, args...))})
}

// add notes Problems that somebody else has found.
func (f *findings) add(problems []cluster.Problem) {
	for _, p := range problems {
		if f.full(p.Reason) {
			return
		}
		f.problems = append(f.problems, p)
	}
}

// full tells whether no more is reported of the object. The last Problem says so.
func (f *findings) full(reason string) bool {
	if len(f.problems) == mostProblems {
		f.problems = append(f.problems, cluster.Problem{Ref: f.ref, UID: f.uid, Reason: reason,
			Message: fmt.Sprintf("more than %d parts of the object are not right: the others are not reported", mostProblems)})
	}
	return len(f.problems) > mostProblems
}

// known checks a field that may have one of a few values, or none. An unknown value is a Problem; instead says what
// takes the value's place.
func known[T ~string](f *findings, reason, field string, value T, instead string, values ...T) {
	if value == "" || slices.Contains(values, value) {
		return
	}
	f.bad(reason, "%s: %.64q, want %s: %s", field, string(value), either(values), instead)
}

// either is "A, B or C".
func either[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
