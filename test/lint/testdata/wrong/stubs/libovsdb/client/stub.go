// Package client stands for the real one.
package client
