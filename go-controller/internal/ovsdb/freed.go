package ovsdb

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
)

// freedRecord is what of the record of freed addresses is still to be written. The record is the external_ids of an
// address set without addresses: "10.128.1.7"="2026-01-02T15:04:05Z" is an address that must not be given before that
// time (see names.Range.FreedKey). No owner wants that row, and ovn-northd does not read the column. A transaction that
// deletes the row of what was freed carries the record, too.
type freedRecord struct {
	mu  sync.Mutex
	set map[string]string // by key; "" removes a key
}

// freedSet is the row of the record.
func freedSet() nb.Ref {
	return nb.Ref{
		Table: nbdb.AddressSetTable, UUID: names.ClusterRow(nbdb.AddressSetTable, names.FreedAddressSet),
	}
}

// Record has the next transaction record what was freed, and until when it must not be given, in seconds since 1970.
// The transaction forgets what may be given again.
func (s *Session) Record(freed map[names.Range]int64, over []names.Range) {
	set := make(map[string]string, len(freed)+len(over))
	for _, r := range over {
		set[r.FreedKey()] = ""
	}
	for r, until := range freed {
		set[r.FreedKey()] = time.Unix(until, 0).UTC().Format(time.RFC3339)
	}
	s.freed.add(set, true)
}

// Freed is the record in the database. A time that can't be read is far in the future.
func (s *Session) Freed() map[names.Range]int64 {
	out := map[names.Range]int64{}
	record, _ := s.View().Row(freedSet()).(*nbdb.AddressSet)
	if record == nil {
		return out
	}
	for key, value := range record.ExternalIDs {
		r, ok := names.FreedRange(key)
		if !ok {
			continue
		}
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			at = time.Unix(1<<40, 0)
		}
		out[r] = at.Unix()
	}
	return out
}

// add takes in what is to be written. It replaces what is there already only if it is later.
func (f *freedRecord) add(set map[string]string, later bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = map[string]string{}
	}
	for k, v := range set {
		if _, there := f.set[k]; later || !there {
			f.set[k] = v
		}
	}
}

func (f *freedRecord) take() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.set
	f.set = nil
	return set
}

// freedOperations writes the record.
func (s *Session) freedOperations(set map[string]string) []operation {
	if len(set) == 0 {
		return nil
	}
	put := maps.Clone(set)
	maps.DeleteFunc(put, func(_, v string) bool { return v == "" })
	row := freedSet()
	if s.copy.Row(row.Table, row.UUID) == nil {
		if len(put) == 0 {
			return nil
		}
		op := ovsdb.Operation{Op: ovsdb.OperationInsert, Table: row.Table, UUID: row.UUID}
		op.Row = ovsdb.Row{"name": names.FreedAddressSet, "external_ids": mapValue(put)}
		return []operation{{op, nil, -1}}
	}
	op := on(ovsdb.OperationMutate, row)
	keys := slices.Sorted(maps.Keys(set))
	op.Mutations = append(op.Mutations, mutation("external_ids", ovsdb.MutateOperationDelete, setValue(keys, false)))
	if len(put) > 0 {
		op.Mutations = append(op.Mutations, mutation("external_ids", ovsdb.MutateOperationInsert, mapValue(put)))
	}
	return []operation{{op, nil, -1}}
}
