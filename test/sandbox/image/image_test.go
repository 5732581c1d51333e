package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files reads a tar file.
func files(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = b
	}
}

// TestWrite follows the image's references from the index to the program.
func TestWrite(t *testing.T) {
	const program = "../../../bin/pause" // `make sandbox` builds it
	out := filepath.Join(t.TempDir(), "i.tar")
	i := Image{Name: "localhost/x:1", Entrypoint: []string{"/bin/x"}, Files: map[string]string{"/bin/x": program},
		Links: map[string]string{"/bin/y": "x"}}
	if err := i.Write(out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	layout := files(t, bytes.NewReader(b))
	blob := func(d descriptor) []byte {
		b := layout["blobs/"+strings.ReplaceAll(d.Digest, ":", "/")]
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(b)); got != d.Digest || len(b) != d.Size {
			t.Fatalf("blob %s: %s of %d bytes, want %d", d.Digest, got, len(b), d.Size)
		}
		return b
	}
	var index struct{ Manifests []descriptor }
	decode(t, layout["index.json"], &index)
	if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != i.Name {
		t.Errorf("name %q, want %q", got, i.Name)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(index.Manifests[0]), &manifest)
	var config struct {
		Config struct{ Entrypoint []string }
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, blob(manifest.Config), &config)
	if config.Config.Entrypoint[0] != "/bin/x" || config.Rootfs.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Errorf("configuration %+v", config)
	}
	layer := files(t, bytes.NewReader(blob(manifest.Layers[0])))
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(layer["bin/x"], want) {
		t.Error("the program in the layer isn't the program")
	}
	if _, ok := layer["bin/y"]; !ok {
		t.Error("the link isn't in the layer")
	}
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// TestDynamic checks that a program that needs a loader is refused.
func TestDynamic(t *testing.T) {
	i := Image{Name: "localhost/x:1", Files: map[string]string{"/bin/ls": "/bin/ls"}}
	err := i.Write(filepath.Join(t.TempDir(), "i.tar"))
	if err == nil || !strings.Contains(err.Error(), "isn't static") {
		t.Errorf("Write: %v, want that /bin/ls isn't static", err)
	}
}
