// Package cluster is the core, and not pure.
package cluster

import (
	_ "context"  // want depguard
	_ "log"      // want depguard
	_ "net/http" // want depguard
	_ "os"       // want depguard
	_ "strings"
	_ "sync" // want depguard
	_ "time" // want depguard

	_ "github.com/ovn-kubernetes/libovsdb/client" // want depguard depguard
	_ "k8s.io/api/core/v1"                        // want depguard depguard
)
