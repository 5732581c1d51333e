// Package limits keeps a daemon within the memory that its control group may have. It also says when memory or open
// files run short: what fails for want of them names only itself, and a process that is killed says nothing.
package limits
