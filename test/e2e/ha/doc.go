// Package ha kills each leader of a control plane on several machines, while pods come and go, and checks that nothing
// is lost. It prints how long nothing new was written. `make chaos` runs it.
package ha
