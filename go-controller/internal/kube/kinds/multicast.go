package kinds

import "github.com/northbound-net/northbound/go-controller/internal/annotation"

// reasonMulticast is the reason of a Problem with a namespace's annotation about multicast.
const reasonMulticast = "InvalidMulticast"

// decodeMulticast tells whether the pods of a namespace may send each other multicast.
func decodeMulticast(f *findings, annotations map[string]string) bool {
	switch raw, there := annotations[annotation.NamespaceMulticast]; {
	case raw == "true":
		return true
	case there && raw != "false":
		f.bad(reasonMulticast, "annotation %s: %.64q, want \"true\" or \"false\": the namespace's pods send and receive no "+
			"multicast", annotation.NamespaceMulticast, raw)
	}
	return false
}
