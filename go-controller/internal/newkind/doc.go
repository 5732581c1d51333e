// Package newkind holds what CONTRIBUTING.md promises of a new kind: a row and a translator, and it goes from manifests
// and watches to rows, Events, plan and explain. Package kube/permissions tests its permissions. It has tests only.
package newkind
