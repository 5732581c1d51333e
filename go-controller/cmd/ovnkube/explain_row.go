package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

func rowFlag() cli.Flag {
	return &cli.StringFlag{Name: "row", Usage: "explain why the row with this `UUID` is in the Northbound database: the " +
		"object that it is for, with all its rows"}
}

// explainRow explains the row of --row, and the object that owns it.
func explainRow(c *cli.Context) error {
	id, err := uuid.Parse(c.String("row"))
	if err != nil {
		return usageError{fmt.Errorf("explain --row %q: %w: want the _uuid of a row, as ovn-nbctl prints it", c.String("row"),
			err)}
	}
	return explainWith(c, func(c *core.Core, v nb.View, problems []cluster.Problem) (printable, error) {
		row, owner, err := explain.RowOf(c, v, id.String())
		if err != nil {
			return nil, err
		}
		if !slices.Contains(c.Owners(), owner) {
			x := explain.OfVanished(owner)
			return ownedRow{row, x}, x.Compare(c, v)
		}
		x, err := explainerOf(owner.Kind).compared(c, v, owner.Name, problems)
		return ownedRow{row, x}, err
	})
}

// explainerOf is the explainer of the owners of a kind.
func explainerOf(k names.Kind) explainer {
	all := explainers()
	return all[slices.IndexFunc(all, func(e explainer) bool { return e.owns == k })]
}

// ownedRow is a row and what is explained about its owner.
type ownedRow struct {
	row   explain.Row
	owner explanation
}

// WriteText writes the row first.
func (r ownedRow) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "Row\n  %s\n\n", r.row); err != nil {
		return fmt.Errorf("writing a row: %w", err)
	}
	return r.owner.WriteText(w)
}

// WriteJSON writes an object with the row, and the owner as it is explained on its own.
func (r ownedRow) WriteJSON(w io.Writer) error {
	var owner bytes.Buffer
	if err := r.owner.WriteJSON(&owner); err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"row": r.row, "owner": json.RawMessage(owner.Bytes())})
}
