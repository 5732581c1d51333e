// Package progress tells a person what a long-running command is doing: a line
// when a step ends, with the time it took, and while it goes on, every five
// seconds, one that shows it moving.
package progress
