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

// daemonFlags are the usual flags of Open vSwitch's daemons. daemon.Args expands their short forms.
func daemonFlags(name string) []cli.Flag {
	return []cli.Flag{
		stringFlag("pidfile", "", "write the process id to `FILE` (without a value: "+daemon.DefaultPidfile(name)+")"),
		stringFlag("log-file", "", "log to `FILE` (without a value: "+daemon.DefaultLogFile(name)+")"),
		&cli.StringSliceFlag{Name: "verbose", Usage: "log level, also as -v`DESTINATION:LEVEL`; destinations: file, " +
			"console, any; levels: off, emer, err, warn, info, dbg; repeatable"},
		boolFlag("detach", "go to the background once the daemon works"),
		logFormatFlag(),
	}
}

// daemonNames maps the commands with daemonFlags to the names of their pidfiles and logs.
func daemonNames() map[string]string {
	return map[string]string{"watcher": "ovn-k8s-watcher", "gateway-helper": "ovn-k8s-gateway-helper"}
}

// runDaemon runs work as a daemon with the pidfile, the log and the detaching that daemonFlags ask for.
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
