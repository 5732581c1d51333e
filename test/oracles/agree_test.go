package oracles

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit/policytest"
)

const (
	sets        = 10000 // of a cluster and its policies, always the same
	connections = 30    // tried in each set
	stream      = 43    // of random numbers

	newSets      = 300            // sets that are new each time
	setsVariable = "ORACLES_SETS" // asks for another number of them
	seedVariable = "ORACLES_SEED" // repeats those of an earlier run
)

// asker asks the rows and the libraries, and counts.
type asker struct {
	schema    *nb.Schema
	libraries []library
	asked     map[string]int               // by the library's name and its answer
	not       map[string]map[deviation]int // why a library was not asked
}

func newAsker() *asker {
	a := &asker{nb.NewSchema(), libraries(nil), map[string]int{}, map[string]map[deviation]int{}}
	for _, l := range a.libraries {
		a.not[l.name()] = map[deviation]int{}
	}
	return a
}

// compare asks about connections of a random set.
func (a *asker) compare(t *testing.T, set string, d policytest.Dice) {
	t.Helper()
	k := random(d)
	q, err := newQuestions(k, a.schema)
	if err != nil {
		t.Fatalf("%s: %v\n%s", set, err, k.Text())
	}
	for _, l := range a.libraries {
		l.load(q)
	}
	for range connections {
		c := q.connection(d)
		for _, l := range a.libraries {
			text, allowed, reason := q.difference(l, c)
			switch {
			case text != "":
				t.Fatalf("%s: %s", set, a.smallest(l, k, c))
			case reason != "":
				a.not[l.name()][reason]++
			case allowed:
				a.asked[l.name()+" allows"]++
			default:
				a.asked[l.name()+" denies"]++
			}
		}
	}
}

// smallest describes a difference in the smallest cluster in which it was found.
func (a *asker) smallest(l library, k *policytest.Cluster, c connection) string {
	var last string
	small, _ := k.Shrink(c, func(k *policytest.Cluster, c connection) bool {
		q, err := newQuestions(k, a.schema)
		if err != nil {
			return false
		}
		l.load(q)
		text, _, _ := q.difference(l, c)
		if text != "" {
			last = text
		}
		return text != ""
	})
	return last + "\n" + small.Text()
}

// tell prints the counts.
func (a *asker) tell(t *testing.T) {
	t.Helper()
	for _, l := range a.libraries {
		allows, denies := a.asked[l.name()+" allows"], a.asked[l.name()+" denies"]
		t.Logf("%s was asked %d questions: it allows %d and denies %d", l.name(), allows+denies, allows, denies)
		for _, d := range deviations() {
			if d.how == notAsked && slices.Contains(d.of, l.name()) {
				t.Logf("%s was not asked about %s: %d questions", l.name(), d.what, a.not[l.name()][d.what])
			}
		}
	}
}

// The rows of random policies do what libraries of others say.
func TestLibrariesAgree(t *testing.T) {
	a := newAsker()
	for seed := range uint64(sets) {
		a.compare(t, fmt.Sprintf("set %d", seed), policytest.NewDice(seed, stream))
	}
	a.tell(t)
	for what, least := range map[string]int{
		kubeNetworkPolicies + " allows": 180000, kubeNetworkPolicies + " denies": 80000,
		cyclonus + " allows": 90000, cyclonus + " denies": 45000,
		cilium + " allows": 150000, cilium + " denies": 80000,
	} {
		if a.asked[what] < least {
			t.Errorf("%s: %d questions, want %d or more: the sets prove too little", what, a.asked[what], least)
		}
	}
}

// The same holds for sets that nobody has tried before.
func TestLibrariesAgreeAboutNewSets(t *testing.T) {
	number, seed := uint64(newSets), rand.Uint64()
	for name, value := range map[string]*uint64{setsVariable: &number, seedVariable: &seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("reading %s: %v", name, err)
			}
		}
	}
	again := fmt.Sprintf("%s=%d %s=%d", seedVariable, seed, setsVariable, number)
	t.Logf("%d new sets; these variables repeat them: %s", number, again)
	a := newAsker()
	for i := range number {
		a.compare(t, fmt.Sprintf("set %d of %s", i, again), policytest.NewDice(seed, i))
	}
	a.tell(t)
}

// tried is a deviation of one library, about which nothing is done.
type tried struct {
	deviates
	library
}

// Without what the test does about a deviation, the library and the rows differ. If a library no longer deviates, its
// line can go.
func TestDeviationsAreReal(t *testing.T) {
	var open []tried
	for _, d := range deviations() {
		for _, of := range d.of {
			for _, l := range libraries(without{d.what}) {
				if l.name() == of {
					open = append(open, tried{d, l})
				}
			}
		}
	}
	schema := nb.NewSchema()
	for seed := uint64(0); seed < sets && len(open) > 0; seed++ {
		d := policytest.NewDice(seed, stream)
		q, err := newQuestions(random(d), schema)
		if err != nil {
			t.Fatal(err)
		}
		for _, try := range open {
			try.load(q)
		}
		for range connections {
			c := q.connection(d)
			open = slices.DeleteFunc(open, func(try tried) bool {
				text, _, _ := q.difference(try, c)
				if text != "" {
					t.Logf("%s: %s. What the test does: %s. %s\nset %d: %s", try.what, try.name(), try.how, try.why, seed, text)
				}
				return text != ""
			})
		}
	}
	for _, try := range open {
		t.Errorf("%s: %s answers as the rows do in all sets, want a difference", try.what, try.name())
	}
}
