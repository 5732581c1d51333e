// Package ovsdb may import the client.
package ovsdb

import _ "github.com/ovn-kubernetes/libovsdb/client" // here it is used
