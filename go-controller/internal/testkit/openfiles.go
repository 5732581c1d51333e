package testkit

import (
	"syscall"
	"testing"
)

// OpenFiles is the limit of open files of this process, and a function that sets it again.
func OpenFiles(t *testing.T) (was syscall.Rlimit, restore func()) {
	t.Helper()
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	return was, func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
}
