// Package v1 stands for the real one.
package v1
