// Package rules breaks each rule once.
package rules

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	_ "unsafe"
	// want-above revive

	"example.com/old"
)

var global = 1 // want gochecknoglobals unused

func init() { global++ } // want gochecknoinits

func unusedFunction() {} // want unused

func Exported() { // want revive
	fmt.Printf("%d\n", "text") // want SA5009 printf
	old.Logf("%d\n", "text")   // want printf
	old.Do()                   // want SA1019
	strings.NewReplacer("one") // want SA5012
	os.Remove("file")          // want errcheck
	_, _ = fmt.Fprintln(os.Stderr)
	fmt.Fprintln(os.Stderr)
}

// Compare compares errors.
func Compare(err error) bool {
	if err == io.EOF { // want errorlint
		return true
	}
	return errors.Is(fmt.Errorf("reading: %v", err), io.EOF) // want errorlint
}

// Assign assigns for nothing.
func Assign() int {
	n := 1 // want ineffassign
	n = 2
	return n
}

// Convert converts an int to an int, and has a mispelled comment. // want misspell
func Convert(n int) int { return int(n) } // want unconvert

// Get leaves a body open.
func Get() error {
	r, err := http.Get("http://localhost") // want bodyclose
	if err != nil {
		return err
	}
	fmt.Println(r.Status)
	return nil
}

// Text is an error with a capital letter.
func Text() error { return errors.New("Wrong.") } // want revive ST1005

// Simplify could be simpler.
func Simplify(b bool) bool {
	if b == true { // want S1002
		return true
	}
	s := []int{1}
	fmt.Println(s[:len(s)], !(b && !b)) // want S1010 QF1001
	return false
}

type thing struct{}

func (t *thing) one() {}

func (self *thing) two() { // want ST1006 revive
	self.one()
}

// UseThing has a name that Go writes otherwise.
func UseThing(someId int) { // want revive
	new(thing).two()
	fmt.Println(someId)
}

// Suppress breaks rules where a comment says why, and where it doesn't.
func Suppress() {
	os.Remove("a") //nolint:errcheck // it may be gone
	// want-below nolintlint
	os.Remove("b") //nolint:errcheck
	// want-below errcheck nolintlint
	os.Remove("c") //nolint // it may be gone
	// want-below errcheck
	os.Remove("d") //nolint:unused // that is another rule
}

// Long has too many statements.
func Long() { // want funlen
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
	global++
	global--
}
