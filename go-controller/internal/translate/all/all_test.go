package all_test

import (
	"slices"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

// Each kind of owner has one translator. A kind that names.Kinds lacks would be planned last, and `ovnkube explain`
// would not find its rows.
func TestEachKindHasOneTranslator(t *testing.T) {
	var got []names.Kind
	for _, translator := range all.Translators(nb.NewSchema()) {
		got = append(got, translator.Kind())
	}
	if want := names.Kinds(); !slices.Equal(got, want) {
		t.Errorf("translators of %v, want those of %v", got, want)
	}
}
