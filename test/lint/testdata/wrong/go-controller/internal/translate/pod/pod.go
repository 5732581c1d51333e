// Package pod is a room that imports another; the module's path is not the real one.
package pod

import _ "github.com/northbound-net/northbound/go-controller/internal/translate/service" // want depguard
