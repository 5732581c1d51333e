package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"

	"github.com/northbound-net/northbound/go-controller/internal/daemon"
)

// daemonFlags are those of Open vSwitch's daemons; daemon.Args writes their
// short forms out.
func daemonFlags(name string) []cli.Flag {
	return []cli.Flag{
		stringFlag("pidfile", "", "write the process's number to `FILE` (without a value: "+daemon.DefaultPidfile(name)+")"),
		stringFlag("log-file", "", "log to `FILE` (without a value: "+daemon.DefaultLogFile(name)+")"),
		&cli.StringSliceFlag{Name: "verbose", Usage: "as -v`DESTINATION:LEVEL`: how much to log to file, console or any: off, emer, err, warn, info, dbg; may be given again"},
		boolFlag("detach", "go on in the background once it works"),
		stringFlag("log-format", "text", "`FORMAT`: text, json"),
	}
}

// daemonNames is the commands that have daemonFlags, with the names that their
// files go by.
func daemonNames() map[string]string {
	return map[string]string{"watcher": "ovn-k8s-watcher", "gateway-helper": "ovn-k8s-gateway-helper"}
}

// runDaemon runs work as daemonFlags say, with a log. check looks at the
// command line before anything else, in the foreground.
func runDaemon(c *cli.Context, work func(ctx context.Context, log *slog.Logger, ready func()) error) error {
	levels, err := daemon.ParseLevels(c.StringSlice("verbose"))
	if err != nil {
		return usageError{err}
	}
	newHandler, err := logHandler(c)
	if err != nil {
		return err
	}
	o := daemon.Options{Pidfile: c.String("pidfile"), LogFile: c.String("log-file"), Detach: c.Bool("detach")}
	return daemon.Run(c.Context, o, func(ctx context.Context, file io.Writer, ready func()) error {
		var handlers []slog.Handler
		if file != nil {
			handlers = append(handlers, newHandler(file, levels.File))
		}
		if !o.Detach {
			handlers = append(handlers, newHandler(os.Stderr, levels.Console))
		}
		log := slog.New(slog.NewMultiHandler(handlers...))
		klog.SetSlogLogger(log.With("from", "client-go"))
		return work(ctx, log, ready)
	})
}
