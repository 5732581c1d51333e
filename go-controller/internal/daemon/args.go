package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// Where files go that are asked for without a name.
const (
	runDir = "/var/run/ovn-kubernetes"
	logDir = "/var/log/ovn-kubernetes"
)

// DefaultPidfile is the file that --pidfile without a value means.
func DefaultPidfile(name string) string { return filepath.Join(runDir, name+".pid") }

// DefaultLogFile is the file that --log-file without a value means.
func DefaultLogFile(name string) string { return filepath.Join(logDir, name+".log") }

// Args writes out what Open vSwitch's daemons may be given in short, so that an
// ordinary parser of flags understands it: --pidfile and --log-file without a
// value, and -vDESTINATION:LEVEL as --verbose=DESTINATION:LEVEL. name is the
// program's.
func Args(name string, args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		a := args[i]
		valued := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		switch {
		case a == "--":
			return append(out, args[i:]...)
		case (a == "--pidfile" || a == "--log-file") && valued:
			i++
			a += "=" + args[i]
		case a == "--pidfile":
			a += "=" + DefaultPidfile(name)
		case a == "--log-file":
			a += "=" + DefaultLogFile(name)
		case a == "-v":
			a = "--verbose=dbg"
		case strings.HasPrefix(a, "-v") && !strings.HasPrefix(a, "-version"):
			a = "--verbose=" + strings.TrimPrefix(a, "-v")
		}
		out = append(out, a)
	}
	return out
}

// Off is a level above all that is logged.
const Off = slog.Level(100)

// Levels is how much is logged, to the log file and to standard error.
type Levels struct{ File, Console slog.Level }

// ParseLevels reads what -v was given: "DESTINATION:LEVEL" or "LEVEL", of which
// later ones count for more (ovs-vswitchd(8)). A destination is file, console,
// any, or syslog, which there is none of here; a level is off, emer, err, warn,
// info or dbg.
func ParseLevels(list []string) (Levels, error) {
	out := Levels{File: slog.LevelInfo, Console: slog.LevelInfo}
	for _, item := range list {
		dest, word, ok := strings.Cut(item, ":")
		if !ok {
			dest, word = "any", item
		}
		level, ok := map[string]slog.Level{"off": Off, "emer": slog.LevelError + 4, "err": slog.LevelError, "warn": slog.LevelWarn,
			"info": slog.LevelInfo, "dbg": slog.LevelDebug}[word]
		if !ok {
			return out, fmt.Errorf("-v%s: level %q: want off, emer, err, warn, info or dbg", item, word)
		}
		switch dest {
		case "file":
			out.File = level
		case "console":
			out.Console = level
		case "any":
			out.File, out.Console = level, level
		case "syslog":
		default:
			return out, fmt.Errorf("-v%s: destination %q: want file, console, syslog or any", item, dest)
		}
	}
	return out, nil
}
