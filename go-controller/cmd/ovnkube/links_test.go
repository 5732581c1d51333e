package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every relative link in the documentation leads to a file that is there, and
// every anchor to a heading of it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	checked := 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(prose(readFile(t, page)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link %s leads nowhere", page, m[1])
			} else if anchor != "" && !anchors(readFile(t, file))[anchor] {
				t.Errorf("%s: link %s: the page has no such heading", page, m[1])
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links checked, want at least 100", checked)
	}
}

// Every page is reached from README.md by links.
func TestEveryPageIsLinked(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^()\s#]+)[^()\s]*\)`)
	reached := map[string]bool{}
	for next := []string{filepath.Join(repository, "README.md")}; len(next) > 0; next = next[1:] {
		if page := next[0]; !reached[page] {
			reached[page] = true
			for _, m := range link.FindAllStringSubmatch(prose(readFile(t, page)), -1) {
				if strings.HasSuffix(m[1], ".md") && !strings.Contains(m[1], "://") {
					next = append(next, filepath.Join(filepath.Dir(page), m[1]))
				}
			}
		}
	}
	for _, page := range pages(t) {
		if !reached[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
}

// Every page that code, units, manifests or the Makefile name is there.
func TestNamedPages(t *testing.T) {
	named := regexp.MustCompile(`docs/[a-z/-]+[a-z0-9-]+\.md`)
	found := 0
	kinds := []string{".go", ".service", ".yaml", ".sh", ""}
	for _, dir := range []string{"go-controller", "test", "dist", "Makefile"} {
		err := filepath.WalkDir(filepath.Join(repository, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !slices.Contains(kinds, filepath.Ext(path)) {
				return err
			}
			for _, page := range named.FindAllString(readFile(t, path), -1) {
				found++
				if _, err := os.Stat(filepath.Join(repository, page)); err != nil {
					t.Errorf("%s names %s, which is not there", path, page)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("%d pages named, want at least 10", found)
	}
}

// pages lists the Markdown files of the documentation.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// prose is a page without its code, in which brackets are no links.
func prose(page string) string {
	page = regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(page, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(page, "")
}

// anchors are those that a page's headings have, as code forges make them: lower
// case, dashes for spaces, without punctuation.
func anchors(page string) map[string]bool {
	page = regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(page, "")
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		heading := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		out[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return out
}
