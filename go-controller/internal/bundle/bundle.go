package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Names of files in a bundle.
const (
	Objects    = "objects.json"      // the manifest, as package kube/snapshot writes it
	Northbound = "databases/nb.db"   // the Northbound database, as `ovsdb-client backup` writes it
	Southbound = "databases/sb.db"   // the Southbound database
	Errors     = "errors.txt"        // what could not be collected, and why
	Directory  = "northbound-bundle" // the directory in the archive
)

// maxFile is the longest file that is read from a bundle: a small archive may unpack to a disk full of zeros.
const maxFile = 4 << 30

// ErrNoFile means that a bundle lacks a file.
var ErrNoFile = errors.New("it is not in the bundle")

// Is tells whether a path is that of a bundle, by its name.
func Is(path string) bool {
	return slices.ContainsFunc([]string{".tgz", ".tar.gz"}, func(end string) bool { return strings.HasSuffix(path, end) })
}

// Writer makes a bundle.
type Writer struct {
	tar  *tar.Writer
	gzip *gzip.Writer
	now  time.Time
}

// NewWriter writes a bundle to w. Its files are dated now.
func NewWriter(w io.Writer, now time.Time) *Writer {
	z := gzip.NewWriter(w)
	return &Writer{tar: tar.NewWriter(z), gzip: z, now: now}
}

// Add adds a file.
func (w *Writer) Add(name string, content []byte) error {
	h := &tar.Header{Name: Directory + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: w.now}
	if err := w.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("adding %s to the bundle: %w", name, err)
	}
	if _, err := w.tar.Write(content); err != nil {
		return fmt.Errorf("adding %s to the bundle: %w", name, err)
	}
	return nil
}

// Close ends the archive.
func (w *Writer) Close() error {
	if err := errors.Join(w.tar.Close(), w.gzip.Close()); err != nil {
		return fmt.Errorf("ending the bundle: %w", err)
	}
	return nil
}

// Copy copies a file of the bundle at path to w.
func Copy(path, name string, w io.Writer) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("reading the bundle %s: %w", path, err)
	}
	for all := tar.NewReader(z); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s of the bundle %s: %w", name, path, ErrNoFile)
		}
		if err != nil {
			return fmt.Errorf("reading the bundle %s: %w", path, err)
		}
		if h.Name != Directory+"/"+name {
			continue
		}
		if h.Size > maxFile {
			return fmt.Errorf("reading %s of the bundle %s: %d bytes, want at most %d", name, path, h.Size, int64(maxFile))
		}
		if _, err := io.Copy(w, all); err != nil {
			return fmt.Errorf("reading %s of the bundle %s: %w", name, path, err)
		}
		return nil
	}
}
