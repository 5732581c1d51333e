package limits

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// interval is the time between two looks.
const interval = 2 * time.Second

// share is the part of its group's memory, in per cent, within which the Go runtime keeps a process. The rest is for
// what the runtime does not count: the program itself, and files in the kernel's cache.
const share = 90

// Memory is short when live objects are so many per cent of the limit: then garbage is collected all the time. Files
// are short when so many per cent are open. Neither is over before it is slack less.
const (
	shortMemory = 75
	shortFiles  = 90
	slack       = 10
)

// Keep keeps the process within its limits, and logs when one is near, until ctx ends. Where the environment sets
// GOMEMLIMIT, the operator has decided on memory.
func Keep(ctx context.Context, log *slog.Logger) {
	k := newKeeper(log)
	defer k.close()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		k.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keeper is what Keep remembers.
type keeper struct {
	log    *slog.Logger
	group  group
	files  *os.File // the directory of the process's files, nil if it can't be opened
	before int64    // the memory limit that it found
	ours   bool     // whether it sets the memory limit
	least  int64    // of the group: the last one that could be read
	memory state
	open   state
}

// state is whether something is short.
type state struct{ short bool }

func newKeeper(log *slog.Logger) *keeper {
	k := &keeper{log: log, group: ownGroup("/proc/self"), before: debug.SetMemoryLimit(-1), least: math.MaxInt64}
	k.ours = k.before == math.MaxInt64
	k.files, _ = os.Open("/proc/self/fd") // without it, files are not counted
	return k
}

func (k *keeper) close() {
	if k.files != nil {
		_ = k.files.Close() // it was only read
	}
	debug.SetMemoryLimit(k.before)
}

// look compares once.
func (k *keeper) look() {
	if least, ok := k.group.limit(); ok && k.ours && least != k.least { // it may change while the process runs
		k.least = least
		k.setLimit()
	}
	live, limit := figure("/gc/heap/live:bytes"), figure("/gc/gomemlimit:bytes")
	switch k.memory.changed(live, limit, shortMemory) {
	case shorter:
		k.log.Warn("memory is short: this process may be killed for it", "live", live, "limit", limit)
	case longer:
		k.log.Info("memory is not short any more", "live", live, "limit", limit)
	}
	open, most := k.openFiles()
	switch k.open.changed(open, most, shortFiles) {
	case shorter:
		k.log.Warn("open files are short: connections and pods may fail", "open", open, "limit", most)
	case longer:
		k.log.Info("open files are not short any more", "open", open, "limit", most)
	}
}

// setLimit has the Go runtime collect garbage before the group's limit is reached.
func (k *keeper) setLimit() {
	if k.least == math.MaxInt64 {
		debug.SetMemoryLimit(math.MaxInt64)
		k.log.Info("memory is not limited any more")
		return
	}
	debug.SetMemoryLimit(k.least / 100 * share)
	k.log.Info("memory is limited", "group", k.least, "process", k.least/100*share)
}

// openFiles returns how many files are open, and how many may be. Without a count both are 0.
func (k *keeper) openFiles() (open, most uint64) {
	var r syscall.Rlimit
	if k.files == nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0, 0
	}
	if _, err := k.files.Seek(0, 0); err != nil {
		return 0, 0
	}
	all, err := k.files.Readdirnames(-1)
	if err != nil {
		return 0, 0
	}
	return uint64(len(all)), r.Cur
}

// The results of changed.
const (
	same = iota
	shorter
	longer
)

// changed takes a new measurement. percent is what is short.
func (s *state) changed(used, limit, percent uint64) int {
	switch whole := limit / 100; {
	case !s.short && limit > 0 && used >= whole*percent+limit%100*percent/100:
		s.short = true
		return shorter
	case s.short && used < whole*(percent-slack)+limit%100*(percent-slack)/100:
		s.short = false
		return longer
	}
	return same
}

// figure reads a metric of the Go runtime that is a whole number.
func figure(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
