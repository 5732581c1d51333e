package machines

import (
	"os"
	"strings"
	"testing"
)

// Blocks returns the commands under a heading of a page, such as "## Install", block by block. Blocks of text are no
// commands.
func Blocks(t *testing.T, page, heading string) (out []string) {
	t.Helper()
	for _, block := range fenced(t, page, heading) {
		if !strings.HasPrefix(block, "text\n") {
			out = append(out, strings.TrimSpace(strings.ReplaceAll(block, "\n   ", "\n")))
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no commands under %q", page, heading)
	}
	return out
}

// Shown returns the blocks of a language under a heading of a page, such as "text" or "yaml".
func Shown(t *testing.T, page, heading, language string) (out []string) {
	t.Helper()
	for _, block := range fenced(t, page, heading) {
		if text, ok := strings.CutPrefix(block, language+"\n"); ok {
			out = append(out, text)
		}
	}
	return out
}

// fenced returns all blocks between fences under a heading of a page.
func fenced(t *testing.T, page, heading string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for i, part := range strings.Split(section, "```") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

// Steps is Blocks of a heading that has so many.
func Steps(t *testing.T, page, heading string, count int) []string {
	t.Helper()
	all := Blocks(t, page, heading)
	if len(all) != count {
		t.Fatalf("%s has under %q the commands %q, want %d blocks", page, heading, all, count)
	}
	return all
}
