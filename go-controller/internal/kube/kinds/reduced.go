package kinds

import (
	"maps"
	"slices"
)

// Part is an object within an object, as JSON has them; empty if there is none.
func Part(o map[string]any, field string) map[string]any {
	p, _ := o[field].(map[string]any)
	return p
}

// Only is an object with these fields alone.
func Only(o map[string]any, fields ...string) map[string]any {
	out := maps.Clone(o)
	maps.DeleteFunc(out, func(field string, _ any) bool { return !slices.Contains(fields, field) })
	return out
}

func reducedNode(whole map[string]any) map[string]any {
	return map[string]any{
		"spec":   Only(Part(whole, "spec"), "podCIDR", "podCIDRs", "taints", "unschedulable"),
		"status": Only(Part(whole, "status"), "addresses", "conditions"),
	}
}

// reducedPod has of containers the name, the ports and whether they restart: their commands and environment are
// nobody's business.
func reducedPod(whole map[string]any) map[string]any {
	spec := Only(Part(whole, "spec"), "nodeName", "hostNetwork", "containers", "initContainers")
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := spec[field].([]any)
		var reduced []any
		for _, c := range list {
			if container, ok := c.(map[string]any); ok {
				reduced = append(reduced, Only(container, "name", "ports", "restartPolicy"))
			}
		}
		if reduced != nil {
			spec[field] = reduced
		}
	}
	return map[string]any{"spec": spec, "status": Only(Part(whole, "status"), "phase", "podIP", "podIPs", "hostIP",
		"hostIPs", "conditions", "startTime")}
}
