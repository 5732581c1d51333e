package kinds

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// Conditions are kept letter by letter. Ours is known only if it is whole.
func TestObservedOf(t *testing.T) {
	const (
		other = `{"status":"True","type":"Other"}`
		mine  = `{"message":"m","observedGeneration":4,"reason":"R","status":"True","type":"Accepted"}`
	)
	whole := cluster.Condition{Type: "Accepted", True: true, Reason: "R", Message: "m", Generation: 4}
	for status, want := range map[string]cluster.Observed{
		`null`:                {},
		`{}`:                  {},
		`{"conditions":null}`: {},
		`{"conditions":[]}`:   {Conditions: `[]`},
		`{"conditions":"x"}`:  {Conditions: `"x"`},
		`{"conditions":[` + other + `,` + mine + `]}`: {Conditions: `[` + other + `,` + mine + `]`,
			Own: []cluster.Condition{whole}},
		`{"conditions":[{"reason":"S","status":"False","type":"Second"},` + mine + `]}`: {
			Conditions: `[{"reason":"S","status":"False","type":"Second"},` + mine + `]`,
			Own:        []cluster.Condition{whole, {Type: "Second", Reason: "S"}}},
		`{"conditions":[{"status":"Unknown","type":"Accepted"}]}`: {
			Conditions: `[{"status":"Unknown","type":"Accepted"}]`},
	} {
		u := &unstructured.Unstructured{}
		text := `{"apiVersion":"v1","kind":"K","metadata":{"generation":5},"status":` + status + `}`
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		want.Generation, want.HasStatus = 5, status != "null"
		if got := observedOf(u, cluster.TypeAccepted, "Second"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", status, got, want)
		}
	}
}
