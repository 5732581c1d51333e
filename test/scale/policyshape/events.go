package policyshape

import "fmt"

// step is one change of the cluster.
type step struct {
	name     string // "": it is not measured
	ops      []operation
	bound    operation // of a fake chassis, when the port exists
	installs string    // the interface whose flows it is over with, "" if none
}

// The names of what is measured, in the order of tables. "Here" is the chassis that is real.
const (
	onlyConfig    = "nothing but `nb_cfg`"
	podMore       = "a pod more here, in 3 subjects, all present on its switch"
	podFirst      = "a pod more here, in 3 subjects, one new to its switch"
	podElsewhere  = "a pod more elsewhere, in 3 subjects, one new to its switch"
	podLess       = "a pod less here, others of its 3 subjects stay"
	podLast       = "a pod less here, the last of one subject on its switch"
	relabel       = "another label here: to a subject that is present"
	relabelFirst  = "another label here: to a subject new to the switch"
	relabelLast   = "another label here: the last of a subject on the switch leaves it"
	policyMore    = "a policy more, of a subject that is here"
	policyLess    = "a policy less, of a subject that is here"
	policyNew     = "a policy more with a subject of its own, here too"
	policyGone    = "a policy less with its subject, here too"
	policyAway    = "a policy more with a subject of its own, only elsewhere"
	policyAwayEnd = "a policy less with its subject, only elsewhere"
)

// eventNames lists what is measured, in the order of tables.
func eventNames() []string {
	return []string{onlyConfig, podMore, podFirst, podElsewhere, podLess, podLast, relabel, relabelFirst, relabelLast,
		policyMore, policyLess, policyNew, policyGone, policyAway, policyAwayEnd}
}

// interfacesPerRound is how many pods a round makes on the first chassis.
const interfacesPerRound = 2

// round returns the steps of the i-th round, which leave the cluster as it was.
func (l *cluster) round(i int) []step {
	present, absent := l.selectorsOn(0, true), l.selectorsOn(0, false)
	three := []int{present[(5*i)%len(present)], present[(5*i+1)%len(present)], present[(5*i+2)%len(present)]}
	other, first := present[(5*i+3)%len(present)], absent[i%len(absent)]
	out := []step{{name: onlyConfig}}
	out = append(out, l.labels(pod{0, l.Pods + interfacesPerRound*i}, three, other, first)...)
	mixed := []int{three[0], three[1], first}
	out = append(out, l.start(podFirst, podLast, pod{0, l.Pods + interfacesPerRound*i + 1}, mixed)...)
	away, new1 := l.selectorsOn(1, true), l.selectorsOn(1, false)
	elsewhere := pod{1, l.Pods + i}
	selectors := []int{away[(2*i)%len(away)], away[(2*i+1)%len(away)], new1[i%len(new1)]}
	steps := l.start(podElsewhere, "", elsewhere, selectors)
	steps[0].installs, steps[0].bound = "", bind(elsewhere)
	out = append(out, steps...)
	return append(out, l.policySteps(i, other)...)
}

// labels starts a pod, changes its label to the other subject, back, to the first one and back, and removes it.
func (l *cluster) labels(p pod, three []int, other, first int) []step {
	steps := l.start(podMore, podLess, p, three)
	move := func(name string, from, to int) step {
		return step{name: name, ops: append(l.member(p, insertion, to), l.member(p, deletion, from)...)}
	}
	return []step{steps[0], move(relabel, three[2], other), move(relabel, other, three[2]),
		move(relabelFirst, three[2], first), move(relabelLast, first, three[2]), steps[1]}
}

// start makes a pod and removes it.
func (l *cluster) start(more, less string, p pod, selectors []int) []step {
	return []step{{name: more, ops: l.addPod(p, selectors...), installs: interfaceOf(p.index)},
		{name: less, ops: l.removePod(p, selectors...)}}
}

// policySteps makes and removes policies.
func (l *cluster) policySteps(i, subject int) []step {
	peers := [2]int{(7*i + 1) % l.Policies, (11*i + 2) % l.Policies}
	more, own, away := fmt.Sprintf("more-%d", i), l.Policies+2*i, l.Policies+2*i+1
	out := []step{{name: policyMore, ops: l.addPolicy(more, subject, peers, 8080)},
		{name: policyLess, ops: l.removePolicy(more, subject)}}
	for _, with := range []struct {
		more, less   string
		first, index int
	}{{policyNew, policyGone, 0, own}, {policyAway, policyAwayEnd, 1, away}} {
		var pods []pod
		for k := range perSelector + 2 {
			pods = append(pods, pod{with.first + (k%perSelector)*(l.Switches-1)/perSelector, (3*i + 7*k) % l.Pods})
		}
		name := policyName(with.index)
		out = append(out,
			step{name: with.more, ops: append(l.addSelector(with.index, pods), l.addPolicy(name, with.index, peers, 80)...)},
			step{name: with.less, ops: append(l.removePolicy(name, with.index), l.removeSelector(with.index)...)})
	}
	return out
}
