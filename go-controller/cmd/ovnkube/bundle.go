package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/bundle"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/settings"
	"github.com/northbound-net/northbound/go-controller/internal/kube/snapshot"
)

// objectsCommand is `ovnkube objects`.
func objectsCommand() *cli.Command {
	return &cli.Command{
		Name:  "objects",
		Usage: "print the objects of the cluster that the network depends on, as one manifest",
		Description: "The manifest has what `ovnkube translate -f` needs to make the same rows as the master, with the\n" +
			"master's settings, and nothing else: no environment variables, commands, volumes or foreign annotations.",
		Flags: slices.Concat([]cli.Flag{timeoutFlag(planTimeout, "`DURATION` to wait for the API server")},
			kubernetesFlags(), logFlags("warn")),
		Action: func(c *cli.Context) error {
			log, err := newLog(c, c.App.ErrWriter)
			if err != nil {
				return err
			}
			clients, err := client.New(kubernetesConfig(c), "ovnkube-objects")
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
			defer cancel()
			if err := clients.ReachServer(ctx, log); err != nil {
				return fmt.Errorf("waiting for the API server %s: %w", clients.Server, err)
			}
			found, err := readPublished(ctx, clients)
			if err != nil && !errors.Is(err, settings.ErrNotPublished) {
				return err
			}
			return snapshot.Write(ctx, c.App.Writer, clients, found)
		},
	}
}

// bundleOf is the bundle among the files of manifestFlag, or "".
func bundleOf(c *cli.Context) string {
	files := c.StringSlice("filename")
	if i := slices.IndexFunc(files, bundle.Is); i >= 0 {
		return files[i]
	}
	return ""
}

// serveBundle has a server of its own serve a copy of the Northbound database in a bundle, and m use it. stop ends the
// server and removes the copy.
func serveBundle(ctx context.Context, file string, m *config.Master) (stop func(), err error) {
	program, err := exec.LookPath("ovsdb-server")
	if err != nil {
		return nil, fmt.Errorf("looking for the server that reads the bundle's database: %w: want the package "+
			"openvswitch-common, or to run in Northbound's image", err)
	}
	dir, err := os.MkdirTemp("", "ovnkube-bundle-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the bundle's database: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := unpack(file, path("nb.db")); err != nil {
		remove()
		return nil, err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(serving, program, "--no-chdir", "-vconsole:warn", "-vsyslog:off", "-vfile:off",
		"--remote=punix:"+path("nb.sock"), "--unixctl="+path("nb.ctl"), path("nb.db"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		end()
		remove()
		return nil, fmt.Errorf("starting the server of the bundle's database: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() { end(); <-ended; remove() }
	for {
		if _, err := os.Stat(path("nb.sock")); err == nil {
			m.NB = config.OVSDB{Addresses: []string{"unix:" + path("nb.sock")}}
			return stop, nil
		}
		select {
		case <-ended:
			remove()
			end()
			return nil, fmt.Errorf("serving the database of the bundle %s: ovsdb-server ended, see above", file)
		case <-ctx.Done():
			stop()
			return nil, fmt.Errorf("waiting for the server of the bundle's database: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// unpack copies the Northbound database of a bundle to a file.
func unpack(file, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("making a file for the bundle's database: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return bundle.Copy(file, bundle.Northbound, f)
}
