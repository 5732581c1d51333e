//go:build tools

// Package helm pins the helm program, with which tests and `make chart` use the chart. It is a module of its own
// because helm needs other versions of Kubernetes' libraries than the sandbox.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
