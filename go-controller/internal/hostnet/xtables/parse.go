package xtables

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"
)

const (
	targetName = 2  // offset of the name in struct xt_entry_target
	targetData = 32 // and of what follows it
	errorName  = 30 // XT_FUNCTION_MAXNAMELEN
	dropIs     = -1 // the verdict NF_DROP in a standard target: -NF_DROP - 1
)

// parse reads a table's entries. A chain of users begins with an entry whose target ERROR holds its name, and ends with
// one that returns. A chain of the kernel ends with its policy, and the table with a last ERROR.
func (f family) parse(hooks uint32, underflow [5]uint32, entries []byte) (Table, error) {
	var t Table
	for at := 0; at < len(entries); {
		e := entries[at:]
		if len(e) < f.head {
			return Table{}, fmt.Errorf("entry at %d is cut", at)
		}
		target, next := int(binary.NativeEndian.Uint16(e[f.target:])), int(binary.NativeEndian.Uint16(e[f.target+2:]))
		if target < f.head || next < target+targetData+4 || next > len(e) {
			return Table{}, fmt.Errorf("entry at %d has a target at %d and ends at %d", at, target, next)
		}
		data := e[target+targetData : next]
		name := unix.ByteSliceToString(e[target+targetName : target+targetData])
		switch {
		case name == "ERROR" && at+next < len(entries):
			t.Chains = append(t.Chains, unix.ByteSliceToString(data[:min(len(data), errorName)]))
			t.Rules -= 2 // this entry, and the one that returns
		case name == "" && hooks&(1<<forward) != 0 && at == int(underflow[forward]):
			t.DropsForwarded = int32(binary.NativeEndian.Uint32(data)) == dropIs
		}
		t.Rules++
		at += next
	}
	t.Rules -= bits.OnesCount32(hooks) + 1 // the policies, and the last entry
	return t, nil
}
