package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU time in proc(5): Linux shows user space 1/100 s
// (USER_HZ) on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// Usage is the cost of a process so far.
type Usage struct {
	CPU  time.Duration // user and system, in steps of 10 ms
	RSS  int64         // bytes, now
	Peak int64         // bytes, the most it has ever been
}

// Usage returns the cost of the process.
func (p *Process) Usage() (Usage, error) { return UsageOf(p.PID()) }

// UsageOf returns the cost of a process (proc(5): stat, status).
func UsageOf(pid int) (Usage, error) {
	cpu, err := cpuOf(pid)
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("reading memory use: %w", err)
	}
	u := Usage{CPU: cpu}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, err := strconv.ParseInt(f[1], 10, 64)
		switch {
		case err != nil:
		case f[0] == "VmRSS:":
			u.RSS = kb << 10
		case f[0] == "VmHWM:":
			u.Peak = kb << 10
		}
	}
	return u, nil
}

func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	// The command in parentheses may have spaces. utime and stime are fields 14 and 15, the 12th and 13th after it.
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("reading CPU time: %q is not as proc(5) has it", stat)
	}
	return ticks(f[11:13])
}

// CPU returns the CPU time of a process, user and system, to the nanosecond (clock_getcpuclockid(3)).
func CPU(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: all that the scheduler has counted
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Machine returns the CPU time that all processors of the machine have worked (proc(5): /proc/stat without idle and
// iowait).
func Machine() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("reading CPU time: %q is not as proc(5) has it", line)
	}
	return ticks([]string{f[1], f[2], f[3], f[6], f[7], f[8]}) // user nice system irq softirq steal
}

func ticks(fields []string) (time.Duration, error) {
	var sum time.Duration
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading CPU time: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
