package testkit

import (
	"strings"
	"testing"
)

func leaky(end <-chan struct{}) { <-end }

func TestLeaks(t *testing.T) {
	end := make(chan struct{})
	go leaky(end)
	if err := leaks(0); err == nil || !strings.Contains(err.Error(), "testkit.leaky") {
		t.Errorf("the leak that is found: %v, want testkit.leaky", err)
	}
	close(end)
	if err := leaks(leakTimeout); err != nil {
		t.Error(err)
	}
}
