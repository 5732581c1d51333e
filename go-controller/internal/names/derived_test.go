package names_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Row UUIDs are UUIDv5 as the library makes them, of keys of any length.
func TestRowUUIDIsVersion5(t *testing.T) {
	space := uuid.MustParse("6f0c2f39-7f0e-5f6b-9d0a-2b9f3c1d7a54")
	for _, name := range []string{"default/web-0", "", strings.Repeat("x", 1000)} {
		key := strings.Join([]string{"Logical_Switch_Port", "Pod", name, "port", "uid"}, "\x00")
		want := uuid.NewSHA1(space, []byte(key)).String()
		if got := names.RowUUID("Logical_Switch_Port", names.KindPod, name, "port", "uid"); got != want {
			t.Errorf("RowUUID of %.20q: %s, want %s", name, got, want)
		}
		for n := 1; n <= names.StandIns; n++ {
			digit := string(rune('0' + n))
			if got, want := names.StandIn(want, n), uuid.NewSHA1(space, []byte(want+"\x00"+digit)).String(); got != want {
				t.Errorf("StandIn %d of %.20q: %s, want %s", n, name, got, want)
			}
		}
	}
}

// RowUUID allocates its result and nothing else: a burst of pods asks for
// thousands.
func TestRowUUIDAllocations(t *testing.T) {
	n := testing.AllocsPerRun(100, func() {
		names.RowUUID("Logical_Switch_Port", names.KindPod, "default/web-0", "port", "uid")
	})
	if n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
