package machines

import (
	"os"
	"strconv"
	"testing"
)

// Number reads a number from an environment variable, by which somebody asks for a longer form of a test.
func Number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("environment variable %s=%q: want a number", variable, text)
	}
	return n
}
