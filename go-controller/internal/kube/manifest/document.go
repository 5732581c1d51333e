package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// document is one YAML or JSON document of a file.
type document struct {
	line int // on which it starts, from 1
	text []byte
}

// documents cuts a file into its documents and leaves empty ones out. A YAML document ends at a line that starts with
// "---" (YAML 1.2.2, section 9.2), even when it is broken, so that the others can be read. JSON values may also follow
// each other without a separator.
func documents(raw []byte) []document {
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	var out []document
	current := document{line: 1}
	flush := func() {
		if !blank(current.text) {
			out = append(out, current.values()...)
		}
	}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if !separator(line) {
			current.text = append(current.text, line...)
			continue
		}
		flush()
		// What follows the separator on its line is part of the document.
		current = document{line: n, text: bytes.Clone(line[len("---"):])}
	}
	flush()
	return out
}

func separator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

// blank tells whether a text has nothing but space, comments and the end mark of a document.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && string(line) != "..." {
			return false
		}
	}
	return true
}

// values are the JSON values that a document is a sequence of, or the document itself.
func (d document) values() []document {
	start := len(d.text) - len(bytes.TrimLeft(d.text, " \t\r\n"))
	if d.text[start] != '{' {
		return []document{d}
	}
	var out []document
	dec := json.NewDecoder(bytes.NewReader(d.text))
	for {
		var v json.RawMessage
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			return []document{d} // not JSON, or broken: the YAML parser says why
		}
		begin := int(dec.InputOffset()) - len(v)
		out = append(out, document{line: d.line + bytes.Count(d.text[:begin], []byte("\n")), text: v})
	}
}

// json is the document as JSON. A repeated key in a mapping is a warning; its last value counts, as in an API server.
func (d document) json() (js []byte, warnings []string, err error) {
	if json.Valid(d.text) {
		return d.text, nil, nil
	}
	js, strict := yaml.YAMLToJSONStrict(d.text)
	if strict == nil {
		return js, nil, nil
	}
	js, err = yaml.YAMLToJSON(d.text)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing: %s", d.absolute(err))
	}
	return js, []string{d.absolute(strict)}, nil
}

// absolute is a parser's error with its line numbers counted in the file.
func (d document) absolute(err error) string {
	number := regexp.MustCompile(`\bline (\d+)`)
	text := strings.Join(strings.Fields(err.Error()), " ")
	return number.ReplaceAllStringFunc(text, func(s string) string {
		n, err := strconv.Atoi(number.FindStringSubmatch(s)[1])
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+d.line-1)
	})
}
