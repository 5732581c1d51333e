package cluster

import "testing"

func TestLabelSelector(t *testing.T) {
	labels := NewLabels(map[string]string{"app": "web", "tier": "front"})
	in := func(key string, values ...string) Requirement { return Requirement{key, In, values} }
	for _, c := range []struct {
		s    LabelSelector
		text string
		want bool
	}{
		{NewLabelSelector(), "", true},
		{NewLabelSelector(in("app", "web")), "app=web", true},
		{NewLabelSelector(in("app", "web", "api", "web")), "app in (api,web)", true},
		{NewLabelSelector(in("app", "api")), "app=api", false},
		{NewLabelSelector(in("zone", "a")), "zone=a", false},
		{NewLabelSelector(Requirement{"app", NotIn, []string{"web"}}), "app notin (web)", false},
		{NewLabelSelector(Requirement{"zone", NotIn, []string{"a"}}), "zone notin (a)", true},
		{NewLabelSelector(Requirement{"app", Exists, nil}), "app", true},
		{NewLabelSelector(Requirement{"zone", Exists, nil}), "zone", false},
		{NewLabelSelector(Requirement{"zone", DoesNotExist, nil}), "!zone", true},
		{NewLabelSelector(Requirement{"app", DoesNotExist, nil}), "!app", false},
		{NewLabelSelector(in("tier", "front"), in("app", "web"), in("tier", "front")), "app=web,tier=front", true},
		{NewLabelSelector(in("app", "web"), in("tier", "back")), "app=web,tier=back", false},
		{NewLabelSelector(Requirement{"app", "Like", []string{"web"}}), "app", false},
	} {
		if got := c.s.Selects(labels); got != c.want || c.s.String() != c.text {
			t.Errorf("%q: selects %v, want %v and the text %q", c.s, got, c.want, c.text)
		}
	}
}

func TestPodSelector(t *testing.T) {
	ops := NewLabelSelector(Requirement{"team", In, []string{"ops"}})
	web := NewLabelSelector(Requirement{"app", In, []string{"web"}})
	desk := &Namespace{Name: "desk", Labels: NewLabels(map[string]string{"team": "ops"})}
	for _, c := range []struct {
		s              PodSelector
		text           string
		desk, unlisted bool // In the namespace desk, and in one that is not known
	}{
		{PodSelector{}, "all pods of all namespaces", true, true},
		{PodSelector{Pods: web}, "pods app=web of all namespaces", true, true},
		{PodSelector{Namespaces: ops}, "all pods of namespaces team=ops", true, false},
		{PodSelector{Namespace: "desk"}, "all pods of namespace desk", true, false},
		{PodSelector{Namespace: "shop", Pods: web}, "pods app=web of namespace shop", false, false},
	} {
		if c.s.String() != c.text || c.s.In("desk", desk) != c.desk || c.s.In("x", nil) != c.unlisted {
			t.Errorf("%s: in desk %v, in an unknown one %v; want %q, %v, %v", c.s, c.s.In("desk", desk), c.s.In("x", nil),
				c.text, c.desk, c.unlisted)
		}
	}
}

func TestNamedPorts(t *testing.T) {
	p := NewNamedPorts(map[PortName]uint16{{TCP, "dns"}: 5353, {UDP, "dns"}: 53})
	for name, want := range map[PortName]uint16{{TCP, "dns"}: 5353, {UDP, "dns"}: 53, {SCTP, "dns"}: 0, {TCP, "web"}: 0} {
		if got, ok := p.Number(name); got != want || ok != (want > 0) {
			t.Errorf("%v: %d, %v; want %d", name, got, ok, want)
		}
	}
	if p != NewNamedPorts(map[PortName]uint16{{UDP, "dns"}: 53, {TCP, "dns"}: 5353}) || p == (NamedPorts{}) {
		t.Error("equal ports differ, or different ones are equal")
	}
}
