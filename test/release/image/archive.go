package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Archive writes the image into a tar file with an OCI image layout, as `ctr images import` and `podman load` read it.
// The file appears whole, or not at all. work is a directory for files in between, on the same file system.
func (i *Image) Archive(file, work string) error {
	dir := filepath.Join(work, "layout")
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	// The first name is containerd's, the second podman's.
	names := map[string]string{
		"io.containerd.image.name":          i.Name,
		"org.opencontainers.image.ref.name": i.Name,
	}
	if err := l.AppendImage(i.Image, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	partial := filepath.Join(work, "archive.tar")
	if err := pack(dir, partial); err != nil {
		return fmt.Errorf("writing the image's archive: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("writing the image's archive: %w", err)
	}
	return nil
}

// pack writes the files of a directory into a tar file, sorted and with nothing of this machine.
func pack(dir, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(out)) }()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		n, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		return write(w, n, entry{mode: 0o644, source: at}, time.Unix(0, 0))
	})
	return errors.Join(err, w.Close(), out.Close())
}

// Push sends the image to a registry, as REGISTRY/REPOSITORY:TAG. It takes credentials from where docker and podman
// keep them.
func (i *Image) Push(ctx context.Context, reference string) error {
	// Without a registry's name the reference would mean one that nobody named.
	to, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading the name to push to: %w: want REGISTRY/REPOSITORY:TAG", err)
	}
	err = remote.Write(to, i.Image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("pushing to %s: %w", reference, err)
	}
	return nil
}
