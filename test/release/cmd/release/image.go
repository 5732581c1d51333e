package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/test/release/bom"
	"github.com/northbound-net/northbound/test/release/image"
	"github.com/northbound-net/northbound/test/sandbox/progress"
	"github.com/northbound-net/northbound/test/sandbox/rootfs"
)

func imageCommand() *cli.Command {
	return &cli.Command{
		Name: "image", Usage: "write the container image into a file, or push it to a registry",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "rootfs",
				Usage: "`DIR` with an installed Debian system; else the sandbox's, which is fetched if need be"},
			&cli.StringFlag{Name: "programs",
				Usage: "`DIR` with our static programs; else the directory \"programs\" beside this program"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "`FILE` for the image; else northbound-VERSION.oci.tar beside this program"},
			&cli.StringFlag{Name: "push", Usage: "also push the image to `REGISTRY/REPOSITORY:TAG`"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Len() > 0 {
				return fmt.Errorf("unexpected argument %q: want `release image [FLAGS]`", c.Args().First())
			}
			return makeImage(c)
		},
	}
}

func makeImage(c *cli.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program's directory: %w", err)
	}
	s := image.Source{Root: c.String("rootfs"), Programs: c.String("programs")}
	if s.Programs == "" {
		s.Programs = filepath.Join(filepath.Dir(self), "programs")
	}
	if err := s.Identify(c.Context, filepath.Join(s.Programs, "ovnkube"), os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if s.Root == "" {
		s.Root, err = rootfs.Ensure(c.Context, rootfs.DefaultCache, rootfs.Tested, progress.New(os.Stderr))
		if err != nil {
			return err
		}
	}
	file := c.String("output")
	if file == "" {
		file = filepath.Join(filepath.Dir(self), "northbound-"+s.Version+".oci.tar")
	}
	work, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return fmt.Errorf("making a directory for the layers: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	i, err := image.Build(s, work)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	if err := i.Archive(file, work); err != nil {
		return err
	}
	if err := listParts(s, i, strings.TrimSuffix(file, ".oci.tar")+".cdx.json"); err != nil {
		return err
	}
	if err := describe(c, i, file); err != nil || !c.IsSet("push") {
		return err
	}
	if err := i.Push(c.Context, c.String("push")); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.App.Writer, "pushed    ", c.String("push"))
	return err
}

// listParts writes a document for scanners into a file.
func listParts(s image.Source, i *image.Image, file string) (err error) {
	digest, err := i.Digest()
	if err != nil {
		return fmt.Errorf("reading the digest of the image: %w", err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("listing what the image is made of: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	about := bom.Subject{Name: i.Name, Version: s.Version, Digest: digest.String(), Time: s.Time}
	return bom.Write(out, about, []string{filepath.Join(s.Programs, "ovnkube"), filepath.Join(s.Programs, "ovn_cni")},
		i.Packages)
}

// describe prints what was made, and what to do with it.
func describe(c *cli.Context, i *image.Image, file string) error {
	digest, err := i.Digest()
	if err != nil {
		return fmt.Errorf("reading the digest of the image: %w", err)
	}
	layers, err := i.Layers()
	if err != nil {
		return fmt.Errorf("reading the layers of the image: %w", err)
	}
	const mebi = 1 << 20
	text := ""
	for n, what := range []string{"system", "programs"} {
		size, err := layers[n].Size()
		if err != nil {
			return fmt.Errorf("reading the size of layer %s: %w", what, err)
		}
		text += fmt.Sprintf(", %s %.1f MiB", what, float64(size)/mebi)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("reading the size of the image: %w", err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "image      %s\ndigest     %s\nfile       %s, %.1f MiB%s\n"+
		"inside     OVN %s, Open vSwitch %s, %d Debian packages: %s\nload it    ctr -n k8s.io images import %s\n",
		i.Name, digest, file, float64(info.Size())/mebi, text, i.OVN, i.OpenVSwitch, len(i.Packages),
		strings.TrimSuffix(file, ".oci.tar")+".cdx.json", file)
	if err != nil {
		return fmt.Errorf("writing what was made: %w", err)
	}
	return nil
}
