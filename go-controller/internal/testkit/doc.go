// Package testkit starts the real parts that tests run against, and leaves
// nothing behind: every process is ended by its recorded pid when the test
// ends, whatever its result. It is imported by tests only.
package testkit
