package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/daemon"
)

// classic is a program of the classic walkthrough, installed as a link to ovnkube.
type classic struct {
	name     string
	command  string   // the command that it stands for; or
	commands []string // the commands that it accepts
}

func classics() []classic {
	return []classic{
		{name: "ovn-k8s-overlay", commands: []string{"master-init", "minion-init", "gateway-init"}},
		{name: "ovn-k8s-util", commands: []string{"nics-to-bridge", "bridges-to-nic"}},
		{name: "ovn-k8s-watcher", command: "watcher"},
		{name: "ovn-k8s-gateway-helper", command: "gateway-helper"},
	}
}

// classicArgs turns the command line of a classic program into one of ovnkube.
func classicArgs(args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	base := filepath.Base(args[0])
	if i := slices.IndexFunc(classics(), func(c classic) bool { return c.name == base }); i >= 0 {
		c := classics()[i]
		if c.command != "" {
			args = append([]string{"ovnkube", c.command}, args[1:]...)
		} else if len(args) < 2 || !slices.Contains(c.commands, args[1]) {
			return nil, usageError{fmt.Errorf("%s: want one of %s", base, strings.Join(c.commands, ", "))}
		}
	}
	if len(args) > 1 {
		if name, ok := daemonNames()[args[1]]; ok {
			args = append(slices.Clone(args[:2]), daemon.Args(name, args[2:])...)
		}
	}
	return args, nil
}
