// Package removal tests that the page for those who install services says how to remove them: afterwards each machine
// and the API server are as they were.
package removal
