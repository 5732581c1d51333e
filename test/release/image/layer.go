package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer writes the entries into a compressed file, which it returns as a layer. All entries get the same time.
func layer(t tree, at time.Time, file string) (_ v1.Layer, err error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(out)) }()
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if err := write(archive, name, t[name], at); err != nil {
			return nil, fmt.Errorf("writing %s into a layer: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close(), out.Close()); err != nil {
		return nil, fmt.Errorf("finishing a layer: %w", err)
	}
	l, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("reading a layer: %w", err)
	}
	return l, nil
}

func ignoreClosed(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// write writes an entry that root owns, without anything else of this machine.
func write(w *tar.Writer, name string, e entry, at time.Time) error {
	// Without the set-user-ID and set-group-ID bits: nobody in a container becomes another user.
	h := &tar.Header{Name: name, Mode: int64(e.mode.Perm()), ModTime: at, Format: tar.FormatPAX}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	content := io.Reader(bytes.NewReader(e.content))
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
	case e.source == "":
		h.Typeflag, h.Size = tar.TypeReg, int64(len(e.content))
	default:
		f, err := os.Open(e.source)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Typeflag, h.Size, content = tar.TypeReg, info.Size(), f
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w, content)
	return err
}
