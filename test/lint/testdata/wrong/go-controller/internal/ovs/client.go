// Package ovs may import the client.
package ovs

import _ "github.com/ovn-kubernetes/libovsdb/client" // here it is used
