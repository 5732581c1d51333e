package master

import (
	"runtime"
	"testing"
)

func TestOneProcessor(t *testing.T) {
	all := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(all)
	for environment, want := range map[string]int{"": 1, "2": 3} {
		t.Setenv("GOMAXPROCS", environment)
		end := oneProcessor()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("GOMAXPROCS=%q: Go uses %d processors, want %d", environment, got, want)
		}
		if end(); runtime.GOMAXPROCS(0) != 3 {
			t.Errorf("GOMAXPROCS=%q: Go uses %d processors at the end, want 3", environment, runtime.GOMAXPROCS(0))
		}
	}
}
