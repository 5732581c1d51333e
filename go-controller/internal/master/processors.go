package master

import (
	"os"
	"runtime"
)

// oneProcessor has Go code run on one processor at a time, and returns what ends that. Almost all work of a master that
// is in sync is done by one goroutine. With more processors each event wakes a thread that finds nothing to do. It does
// nothing where the environment sets GOMAXPROCS: the operator has decided.
func oneProcessor() (end func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	all := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(all) }
}
