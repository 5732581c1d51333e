package machines

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Blocks returns the commands under a heading of a page, such as "## Install", block by block. Blocks of text are no
// commands.
func Blocks(t *testing.T, page, heading string) (out []string) {
	t.Helper()
	section, err := Section(page, heading)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(section, "```") {
		if i%2 == 1 && !strings.HasPrefix(part, "text\n") {
			out = append(out, strings.TrimSpace(strings.ReplaceAll(part, "\n   ", "\n")))
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no commands under %q", page, heading)
	}
	return out
}

// Section returns what a page says under a heading.
func Section(page, heading string) (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		return "", fmt.Errorf("%s has no heading %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	return section, nil
}
