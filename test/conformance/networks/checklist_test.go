package networks

import "slices"

// state says what this project has of one of upstream's cases.
type state int

const (
	isProved    state = iota // a test asserts the same behaviour
	isUntried                // it is served, but no test tries it with packets
	isNotServed              // it is not served
	isNotNeeded              // it is about the means of upstream, which this project does not need
	states
)

// verdict is what this project has of a case.
type verdict struct {
	state state
	note  string // why there is no proof, in sentences
	page  string // which page below docs/ says so, "" if none does
	tests []test // what proves it; else what is tested without packets
}

// behaviour is one of upstream's cases: its meaning, in our words.
type behaviour struct {
	what string
	verdict
}

// group is cases of one subject. The names of upstream's files are below test/e2e of its repository.
type group struct {
	title    string
	upstream []string
	note     string // what holds for all cases of the group, in sentences
	cases    []behaviour
}

// test is a Go test of this repository, or a spec of Kubernetes.
type test struct {
	file, name string
	subtest    string // path of subtests; "*" stands for a name that the test makes when it runs
}

func proved(tests ...test) verdict { return verdict{state: isProved, tests: tests} }

func untried(note string, tests ...test) verdict {
	return verdict{state: isUntried, note: note, tests: tests}
}

func notServed(note, page string) verdict { return verdict{state: isNotServed, note: note, page: page} }

func notNeeded(note, page string) verdict { return verdict{state: isNotNeeded, note: note, page: page} }

// inE2E are tests with packets, on a cluster.
func inE2E(file, name, subtest string) test { return test{"test/e2e/" + file, name, subtest} }

func primary(subtest string) test { return inE2E("networks/primary_test.go", "TestPrimary", subtest) }

func secondary(subtest string) test {
	return inE2E("networks/networks_test.go", "TestNetworks", subtest)
}

func further(subtest string) test { return inE2E("networks/policies_test.go", "TestFurther", subtest) }

func userDefined(subtest string) test {
	return inE2E("networks/userdefined_test.go", "TestUserDefined", subtest)
}

// spec is one of Kubernetes' own specs that pass: a part of its name that no other one has.
func spec(part string) test { return test{specsPage, "Kubernetes", part} }

// golden is a file of objects whose rows are compared with those in another file.
func golden(input string) test {
	return test{"go-controller/cmd/ovnkube/translate_test.go", goldenTest, input}
}

const goldenTest = "TestGolden"

// specsPage is the page of the specs that pass.
const specsPage = "docs/conformance.md"

// unit is a test of a package of the product.
func unit(file, name string) test { return test{"go-controller/internal/" + file, name, ""} }

// checklist is the groups in the order of the page.
func checklist() []group {
	return slices.Concat(primaryGroups(), kindGroups(), interfaceGroups(), serviceGroups())
}
