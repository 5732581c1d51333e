//go:build tools

// Package suite keeps Kubernetes' end-to-end tests and agnhost in a go.mod of their own, to keep their dependencies out
// of all other builds.
package suite

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
	_ "k8s.io/kubernetes/test/images/regression-issue-74839"
)
