package show

import (
	"fmt"
	"io"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// Format is an output format.
type Format string

// The formats.
const (
	Text  Format = "show"  // as `ovn-nbctl show`
	JSON  Format = "json"  // an object with an array of rows per table
	OVSDB Format = "ovsdb" // a database file that ovsdb-server opens
	NBCtl Format = "nbctl" // a script of ovn-nbctl commands that creates the content
	Dot   Format = "dot"   // a graph for graphviz
)

// Formats lists every format.
func Formats() []Format { return []Format{Text, JSON, OVSDB, NBCtl, Dot} }

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	for _, f := range Formats() {
		if string(f) == s {
			return f, nil
		}
	}
	return "", fmt.Errorf("format %q: want one of %v", s, Formats())
}

// Write prints db to w.
func Write(w io.Writer, f Format, s *nb.Schema, db *nb.Database) error {
	v := &view{s, nbdb.Schema(), db}
	var out []byte
	var err error
	switch f {
	case Text:
		out = v.text()
	case JSON:
		out, err = v.json()
	case OVSDB:
		out, err = v.ovsdb()
	case NBCtl:
		out, err = v.nbctl()
	case Dot:
		out = v.dot()
	default:
		_, err = ParseFormat(string(f))
	}
	if err != nil {
		return fmt.Errorf("printing the database as %s: %w", f, err)
	}
	_, err = w.Write(out)
	return err
}
