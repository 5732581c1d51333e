// Command ovn_cni is the CNI plugin that container runtimes call. It hands
// every request to the node agent, `ovnkube node`.
package main

import (
	"os"

	"github.com/northbound-net/northbound/go-controller/internal/cni/shim"
)

func main() { os.Exit(shim.Main()) }
