package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"
)

// printable is printed for people, or for programs.
type printable interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// The formats for people, one of which each command has.
const (
	asText  = "text"
	asTable = "table"
)

// outputFlag chooses the format of what a command prints.
func outputFlag(value, formats string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: value, Usage: "output `FORMAT`: " + formats}
}

// printableFlag chooses the format of a printable. human is asText or asTable; others are further formats of a command.
func printableFlag(human, others string) cli.Flag {
	readable := human
	if human == asText {
		readable += " (or " + asTable + ")"
	}
	if others == "" {
		return outputFlag(human, readable+", json or yaml")
	}
	return outputFlag(human, readable+", json, yaml "+others)
}

// printer reads the flag of printableFlag, which the command may lack. Every command accepts asTable, so that a script
// can ask all commands for the same formats. Several printables in one output are several documents.
func printer(c *cli.Context, human string) (write func(printable) error, err error) {
	w, documents := c.App.Writer, 0
	switch format := c.String("output"); format {
	case human, asTable, "":
		return func(p printable) error { return p.WriteText(w) }, nil
	case "json":
		return func(p printable) error { return p.WriteJSON(w) }, nil
	case "yaml":
		return func(p printable) error {
			documents++
			return writeYAML(w, p, documents > 1)
		}, nil
	default:
		return nil, usageError{fmt.Errorf("--output %q: want %s, json or yaml", format, human)}
	}
}

// writeYAML prints the JSON of p as a YAML document. another says that one has been printed before.
func writeYAML(w io.Writer, p printable, another bool) error {
	var b bytes.Buffer
	if err := p.WriteJSON(&b); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return fmt.Errorf("encoding the output as YAML: %w", err)
	}
	if another {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}

// writeJSON writes a value as JSON, for WriteJSON of a printable.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
