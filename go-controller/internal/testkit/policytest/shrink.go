package policytest

import "slices"

// drop removes an element.
func drop[T any](list *[]T, i int) { *list = slices.Delete(*list, i, i+1) }

// edits lists ways to make the cluster smaller.
func (k *Cluster) edits() []func(*Cluster) {
	out := k.clusterEdits()
	for i, p := range k.Policies {
		out = append(out, func(k *Cluster) { drop(&k.Policies, i) })
		for j, r := range p.Spec.Ingress {
			out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Ingress, j) })
			for m := range r.From {
				out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Ingress[j].From, m) })
			}
			for m := range r.Ports {
				out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Ingress[j].Ports, m) })
			}
		}
		for j, r := range p.Spec.Egress {
			out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Egress, j) })
			for m := range r.To {
				out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Egress[j].To, m) })
			}
			for m := range r.Ports {
				out = append(out, func(k *Cluster) { drop(&k.Policies[i].Spec.Egress[j].Ports, m) })
			}
		}
		if len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) > 0 {
			out = append(out, func(k *Cluster) { k.Policies[i].Spec.PodSelector.Reset() })
		}
	}
	for i, p := range k.Pods {
		out = append(out, func(k *Cluster) { drop(&k.Pods, i) })
		for key := range p.Labels {
			out = append(out, func(k *Cluster) { delete(k.Pods[i].Labels, key) })
		}
		if len(p.Spec.InitContainers) > 0 {
			out = append(out, func(k *Cluster) { k.Pods[i].Spec.InitContainers = nil })
		}
		for j := range p.Spec.Containers {
			out = append(out, func(k *Cluster) { drop(&k.Pods[i].Spec.Containers, j) })
		}
	}
	for i, n := range k.Namespaces {
		for key := range n.Labels {
			if key != "kubernetes.io/metadata.name" {
				out = append(out, func(k *Cluster) { delete(k.Namespaces[i].Labels, key) })
			}
		}
		for key := range n.Annotations {
			out = append(out, func(k *Cluster) { delete(k.Namespaces[i].Annotations, key) })
		}
	}
	return out
}

// clusterEdits lists ways to have fewer ClusterNetworkPolicies, or smaller ones.
func (k *Cluster) clusterEdits() []func(*Cluster) {
	var out []func(*Cluster)
	for i, p := range k.ClusterPolicies {
		out = append(out, func(k *Cluster) { drop(&k.ClusterPolicies, i) })
		for j, r := range p.Spec.Ingress {
			out = append(out, func(k *Cluster) { drop(&k.ClusterPolicies[i].Spec.Ingress, j) })
			if len(r.Protocols) > 0 {
				out = append(out, func(k *Cluster) { k.ClusterPolicies[i].Spec.Ingress[j].Protocols = nil })
			}
		}
		for j, r := range p.Spec.Egress {
			out = append(out, func(k *Cluster) { drop(&k.ClusterPolicies[i].Spec.Egress, j) })
			if len(r.Protocols) > 0 {
				out = append(out, func(k *Cluster) { k.ClusterPolicies[i].Spec.Egress[j].Protocols = nil })
			}
		}
	}
	return out
}

// again is a connection between the same ends in this cluster.
func (k *Cluster) again(c Connection) (Connection, bool) {
	found := 0
	for _, e := range k.Ends(c.From.Addr.Is4()) {
		if e.Name == c.From.Name {
			c.From = e
			found++
		}
		if e.Name == c.To.Name {
			c.To = e
			found++
		}
	}
	return c, found == 2
}

// Shrink is the smallest cluster that was found about which a connection still tells a difference.
func (k *Cluster) Shrink(c Connection, differs func(*Cluster, Connection) bool) (*Cluster, Connection) {
	for {
		smaller := slices.IndexFunc(k.edits(), func(edit func(*Cluster)) bool {
			try := k.Clone()
			edit(try)
			again, there := try.again(c)
			if !there || !differs(try, again) {
				return false
			}
			k, c = try, again
			return true
		})
		if smaller < 0 {
			return k, c
		}
	}
}
