package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/daemon"
)

// classics lists the programs of the classic walkthrough, which are links to ovnkube, with the commands that each
// accepts. A program with one command stands for it.
func classics() map[string][]string {
	return map[string][]string{
		"ovn-k8s-overlay":        {"master-init", "minion-init", "gateway-init"},
		"ovn-k8s-util":           {"nics-to-bridge", "bridges-to-nic"},
		"ovn-k8s-watcher":        {"watcher"},
		"ovn-k8s-gateway-helper": {"gateway-helper"},
	}
}

// classicArgs turns the command line of a classic program into one of ovnkube.
func classicArgs(args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	base := filepath.Base(args[0])
	switch commands := classics()[base]; {
	case len(commands) == 1:
		args = append([]string{"ovnkube", commands[0]}, args[1:]...)
	case len(commands) > 1 && (len(args) < 2 || !slices.Contains(commands, args[1])):
		return nil, usageError{fmt.Errorf("%s: want one of %s", base, strings.Join(commands, ", "))}
	}
	if len(args) > 1 {
		if name, ok := daemonNames()[args[1]]; ok {
			args = append(slices.Clone(args[:2]), daemon.Args(name, args[2:])...)
		}
	}
	return args, nil
}
