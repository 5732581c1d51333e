package main

import (
	"path/filepath"
	"testing"
)

// The commands that networks.md has beside its picture print the graph from which the picture was made. Where they
// print another, -update writes that, and `dot -Tsvg networks.dot > networks.svg` makes the picture anew.
func TestPictureOfNetworks(t *testing.T) {
	steps := console(readFile(t, filepath.Join(docsDir, "networks.md")))
	if len(steps) != 3 {
		t.Fatalf("%d commands in networks.md, want 3", len(steps))
	}
	sh := newShell(t, "")
	for _, s := range steps {
		if got := sh.run(t, s.command); got != s.output {
			t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", s.command, got, s.output)
		}
	}
	golden(t, filepath.Join(docsDir, "networks.dot"), readFile(t, filepath.Join(sh.dir, "networks.dot")))
}
