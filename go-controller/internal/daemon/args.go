package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
)

// Directories of the default pidfile and log file.
const (
	runDir = "/var/run/ovn-kubernetes"
	logDir = "/var/log/ovn-kubernetes"
)

// DefaultPidfile is the pidfile of --pidfile without a value.
func DefaultPidfile(name string) string { return filepath.Join(runDir, name+".pid") }

// DefaultLogFile is the log file of --log-file without a value.
func DefaultLogFile(name string) string { return filepath.Join(logDir, name+".log") }

// Args expands the short forms that Open vSwitch's daemons accept, for an ordinary parser of flags: --pidfile and
// --log-file without a value, and -vDESTINATION:LEVEL as --verbose=DESTINATION:LEVEL. name is the program's.
func Args(name string, args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		a := args[i]
		hasValue := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		switch {
		case a == "--":
			return append(out, args[i:]...)
		case (a == "--pidfile" || a == "--log-file") && hasValue:
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

// Off is a level that disables logging.
const Off = slog.Level(100)

// Levels are the least severe levels to log to the log file and to standard error.
type Levels struct{ File, Console slog.Level }

// ParseLevels reads the values of -v: "DESTINATION:LEVEL" or "LEVEL"; later values override earlier ones
// (ovs-vswitchd(8)). A destination is file, console, any, or syslog, which is ignored. A level is off, emer, err, warn,
// info or dbg.
func ParseLevels(list []string) (Levels, error) {
	out := Levels{File: slog.LevelInfo, Console: slog.LevelInfo}
	for _, item := range list {
		dest, word, ok := strings.Cut(item, ":")
		if !ok {
			dest, word = "any", item
		}
		level, ok := map[string]slog.Level{"off": Off, "emer": slog.LevelError + 4, "err": slog.LevelError,
			"warn": slog.LevelWarn, "info": slog.LevelInfo, "dbg": slog.LevelDebug}[word]
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
