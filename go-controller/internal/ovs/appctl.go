package ovs

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Appctl sends a command to a running daemon of Open vSwitch or OVN, as
// ovs-appctl(8) does: over the socket DAEMON.PID.ctl in its run directory,
// whose PID is in DAEMON.pid. What it prints is returned without blanks at the
// ends.
func Appctl(ctx context.Context, runDir, daemon, command string, args ...string) (string, error) {
	pid, err := os.ReadFile(filepath.Join(runDir, daemon+".pid"))
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", daemon, err)
	}
	socket := filepath.Join(runDir, daemon+"."+strings.TrimSpace(string(pid))+".ctl")
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return "", fmt.Errorf("reaching %s: %w", daemon, err)
	}
	defer conn.Close()
	params := []any{}
	for _, a := range args {
		params = append(params, a)
	}
	var out string
	if err := roundTrip(ctx, conn, daemon, command, params, &out); err != nil {
		return "", err
	}
	return strings.TrimSpace(out), nil
}
