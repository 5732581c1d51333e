package rules

import (
	"fmt"
	"os"
	"testing"
)

var inTests = 1 // allowed in tests

func TestAllowed(t *testing.T) {
	os.Remove("file")
	fmt.Println(inTests)
	fmt.Printf("%d\n", "text") // want SA5009 printf
}

func unusedInTests() {} // want unused
