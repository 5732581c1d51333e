// Package upgrade has the end-to-end test of the way from one version to another, and back.
package upgrade
