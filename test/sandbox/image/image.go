package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"sort"
)

// Image describes an image.
type Image struct {
	Name       string            // as pods refer to it, with a tag
	Entrypoint []string          // of containers
	Cmd        []string          // the entrypoint's default arguments
	Files      map[string]string // static programs: path in the image -> file on this machine
	Data       map[string]string // other files, unchanged; dynamic programs need their loader and libraries here, too
	Links      map[string]string // path in the image -> target
}

const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type blobs map[string][]byte

func (b blobs) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	b[sum] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (b blobs) addJSON(mediaType string, v any) (descriptor, error) {
	content, err := json.Marshal(v)
	return b.add(mediaType, content), err
}

// Write writes the image's tar file.
func (i Image) Write(file string) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	b := blobs{}
	l := b.add(typeLayer, layer)
	config, err := b.addJSON(typeConfig, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{l.Digest}},
	})
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	manifest, err := b.addJSON(typeManifest, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": []descriptor{l},
	})
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.Name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	return i.writeLayout(file, b, index)
}

func (i Image) writeLayout(file string, b blobs, index []byte) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing image %s: %w", i.Name, err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": index}
	for sum, content := range b {
		files["blobs/sha256/"+sum] = content
	}
	for name, content := range files {
		if err := addFile(w, name, 0o644, int64(len(content)), bytes.NewReader(content)); err != nil {
			return fmt.Errorf("writing image %s: %w", i.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing image %s: %w", i.Name, err)
	}
	return f.Close()
}

// layer makes the image's only layer: the files, and the directories and files that programs expect.
func (i Image) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, d := range []string{"bin", "dev", "etc", "proc", "sys", "tmp", "var"} {
		mode := int64(0o755)
		if d == "tmp" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: mode}); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{"etc/group": "root:x:0:\n", "etc/passwd": "root:x:0:0:root:/:/bin/sh\n"} {
		if err := addFile(w, name, 0o644, int64(len(text)), bytes.NewReader([]byte(text))); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(i.Files) {
		if err := addProgram(w, name, i.Files[name], static); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(i.Data) {
		if err := addProgram(w, name, i.Data[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(i.Links) {
		h := &tar.Header{Typeflag: tar.TypeSymlink, Name: path.Clean(name)[1:], Linkname: i.Links[name], Mode: 0o777}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func addProgram(w *tar.Writer, name, file string, checks ...func(*os.File) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for _, check := range checks {
		if err := check(f); err != nil {
			return err
		}
	}
	return addFile(w, path.Clean(name)[1:], 0o755, info.Size(), f)
}

// static returns an error if the program needs a loader, which images do not have.
func static(f *os.File) error {
	program, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("reading program %s: %w", f.Name(), err)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("program %s isn't static: build it with CGO_ENABLED=0", f.Name())
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

func addFile(w *tar.Writer, name string, mode, size int64, r io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

func sorted(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
