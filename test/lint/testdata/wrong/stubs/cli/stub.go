// Package cli stands for the real one.
package cli
