// Package old stands for the real one.
package old

import "fmt"

// Do does nothing.
//
// Deprecated: nobody needs it.
func Do() {}

// Logf prints as Printf does.
func Logf(format string, args ...any) { fmt.Printf(format, args...) }
