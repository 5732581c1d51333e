// Package webhook is an admission webhook that lets changes of some pods wait.
package webhook
