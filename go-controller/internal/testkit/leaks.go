package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakTimeout bounds how long goroutines may take to end after the last test: a loaded machine lets them wait.
const leakTimeout = 20 * time.Second

const certificateManager = "k8s.io/client-go/util/certificate.(*manager)"

// RunTests runs the tests of a package and returns the exit code: a TestMain calls it. It fails if a goroutine is left
// when all tests have ended. The process of an isolated test is not asked: such a test breaks networks, so that its
// servers may wait for clients that are gone. It ends with all that it has.
func RunTests(m *testing.M) int {
	code := m.Run()
	if code != 0 || os.Getenv(isolatedEnv) != "" {
		return code
	}
	if err := leaks(leakTimeout); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines that the tests left behind:", err)
		return 1
	}
	return 0
}

// leaks waits until no goroutine is left but those that libraries keep on purpose. The error has their stacks.
func leaks(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; {
		err := goleak.Find(
			// client-go's certificate manager, once stopped, sleeps on until it would have renewed its certificate.
			goleak.IgnoreAnyFunction(certificateManager+".run"), goleak.IgnoreAnyFunction(certificateManager+".run.func1"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
