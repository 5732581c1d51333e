// Command pause is the process that holds a pod's namespaces. It waits, and reaps orphaned processes if the pod's
// containers share a PID namespace.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for reap() {
			continue
		}
	}
}

// reap waits for one child that has exited, if there is one.
func reap() bool {
	pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	return pid > 0 || errors.Is(err, syscall.EINTR)
}
