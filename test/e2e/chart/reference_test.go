package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// valuesPage is generated from values.yaml and values.schema.json of the chart.
const (
	valuesPage  = "../../../docs/reference/values.md"
	valuesIntro = "# Reference: values of the Helm chart\n\n" +
		"This page is generated from `values.yaml` and `values.schema.json` of the chart. To write it anew:\n\n" +
		"```\ngo test -C test ./e2e/chart -run TestValuesPage -update\n```\n\n" +
		"[Install with Helm](../operate/install.md#values) explains how to set values. Each is shown with its default.\n" +
		"A value that is misspelt or of a wrong type is an error.\n"
	widest = 120 // of a line, in characters
)

// schema is what values.schema.json says of a value.
type schema struct {
	Type             any
	Enum             []string
	Pattern          string
	Minimum, Maximum *int
	Items            *schema
	Properties       map[string]schema
}

// TestValuesPage compares the page, or writes it with -update. Every value is in both files.
func TestValuesPage(t *testing.T) {
	want := valuesReference(t)
	if *update {
		if err := os.WriteFile(valuesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(valuesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the chart's values are: run this test with -update", valuesPage)
	}
}

// valuesReference is the text of the page.
func valuesReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(source + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(source + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var all schema
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	delete(all.Properties, "global") // Helm's own
	var b strings.Builder
	b.WriteString(valuesIntro)
	writeValues(t, &b, "", "", file.Content[0], all)
	return b.String()
}

// writeValues writes the values of an object, which a comment is about: a heading for each object of the file, and a
// list item for each value.
func writeValues(t *testing.T, b *strings.Builder, path, about string, object *yaml.Node, s schema) {
	t.Helper()
	for i := 0; i < len(object.Content); i += 2 {
		key, value := object.Content[i], object.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		of, known := s.Properties[key.Value]
		if !known {
			t.Errorf("values.schema.json has no %s", name)
		}
		delete(s.Properties, key.Value)
		said := comment(t, key)
		if said == "" && about == "" && of.Properties == nil {
			t.Errorf("values.yaml has no comment about %s", name)
		}
		if path == "" {
			fmt.Fprintf(b, "\n## %s\n\n", key.Value)
		}
		if of.Properties != nil {
			if said != "" {
				b.WriteString(fill("", said) + "\n")
			}
			writeValues(t, b, name, said, value, of)
			continue
		}
		item := fmt.Sprintf("- `%s: %s` (%s)", name, inline(t, value), of)
		if said != "" {
			item += ": " + said
		}
		b.WriteString(fill("  ", item))
	}
	for missing := range s.Properties {
		t.Errorf("values.yaml has no %s of %s", missing, path)
	}
}

// comment is the text of a key's comment. Pages that it names are links with the pages' titles.
func comment(t *testing.T, key *yaml.Node) string {
	t.Helper()
	paragraphs := strings.Split(key.HeadComment, "\n\n") // all but the last are about the whole file
	text := regexp.MustCompile(`(?m)^#`).ReplaceAllString(paragraphs[len(paragraphs)-1], "")
	text = strings.Join(strings.Fields(text), " ")
	return regexp.MustCompile(`docs/[a-z/-]+\.md`).ReplaceAllStringFunc(text, func(page string) string {
		content, err := os.ReadFile("../../../" + page)
		if err != nil {
			t.Error(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(content), "# "), "\n")
		return fmt.Sprintf("[%s](../%s)", title, strings.TrimPrefix(page, "docs/"))
	})
}

// inline is a value in one line.
func inline(t *testing.T, value *yaml.Node) string {
	t.Helper()
	if value.Kind != yaml.ScalarNode {
		value.Style = yaml.FlowStyle
	}
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// String says which values the schema accepts.
func (s schema) String() string {
	if len(s.Enum) > 0 {
		return words(s.Enum)
	}
	var types []string
	switch kind := s.Type.(type) {
	case string:
		types = []string{kind}
	case []any:
		for _, k := range kind {
			types = append(types, fmt.Sprint(k))
		}
	}
	text := words(types)
	if s.Items != nil {
		text = "list of " + strings.Replace(s.Items.String(), "string", "strings", 1)
	}
	if s.Pattern != "" {
		text += " matching `" + s.Pattern + "`"
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		text += fmt.Sprintf(", %d to %d", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		text += fmt.Sprintf(", at least %d", *s.Minimum)
	}
	return text
}

// words lists alternatives.
func words(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// fill breaks a text into lines. All but the first begin with indent. Words within backquotes stay in one line.
func fill(indent, text string) string {
	var out strings.Builder
	line := ""
	for _, word := range regexp.MustCompile("(`[^`]*`|[^ `])+").FindAllString(text, -1) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > widest:
			out.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return out.String() + line + "\n"
}
