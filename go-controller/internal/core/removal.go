package core

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/nb"
)

// Removal is the owners in a database that want nothing any more, and how many of all rows of ours they have.
type Removal struct {
	Owners   []nb.Owner // sorted
	Rows, Of int
}

// A removal of more rows than this, and of more than every fifth, may be a fault of whoever says what the cluster is.
const (
	fewRows   = 100
	smallPart = 5
)

// Removal is the one to which a full pass over a database with these owners leads.
func (c *Core) Removal(v nb.View, owners []nb.Owner) Removal {
	all := c.Owners()
	wanted := make(map[nb.Owner]bool, len(all))
	for _, o := range all {
		wanted[o] = true
	}
	var r Removal
	for _, o := range owners {
		rows := len(v.Owned(o))
		if r.Of += rows; !wanted[o] {
			r.Owners, r.Rows = append(r.Owners, o), r.Rows+rows
		}
	}
	slices.SortFunc(r.Owners, nb.Owner.Compare)
	return r
}

// Large tells whether the removal needs approval.
func (r Removal) Large() bool { return r.Rows > fewRows && r.Rows*smallPart > r.Of }

// Digest names the removal: it is the same for the same owners only.
func (r Removal) Digest() string {
	h := sha256.New()
	for _, o := range r.Owners {
		h.Write([]byte(o.String() + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
