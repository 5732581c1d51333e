package ovs

import (
	"bufio"
	"context"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// watchRetry is how long Watch waits before it listens again.
const watchRetry = time.Second

// Watch calls changed after anybody has added, modified or removed a flow of the
// bridge. It also does so when ovs-vswitchd, which loses all flows when it restarts,
// answers again. It works until ctx ends, with `ovs-ofctl monitor` (ovs-ofctl(8),
// "watch:"). While that can't run, changes go unnoticed.
func (f *Flows) Watch(ctx context.Context, bridge string, changed func()) {
	for ctx.Err() == nil {
		f.monitor(ctx, bridge, func(line string) {
			if strings.Contains(line, "event=") {
				changed()
			}
		})
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}

// monitor runs until the connection breaks and hands over each line of output.
func (f *Flows) monitor(ctx context.Context, bridge string, each func(line string)) {
	// Pdeathsig fires when the thread that forked ends (prctl(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Without the socket for ovs-appctl, of which a process that is killed would leave the file.
	cmd := exec.CommandContext(ctx, ofctl, "--no-names", "--unixctl=none", "monitor", f.target(bridge), "watch:")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return
	}
	cmd.Stderr = cmd.Stdout // for unsolicited messages
	if err := cmd.Start(); err != nil {
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		each(lines.Text())
	}
	_ = cmd.Wait() // Watch starts it again, whatever the reason
}
