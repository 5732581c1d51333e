// Package before remembers, in a file, which values this host's sysctls had before the node agent changed them. The
// file belongs in a directory that is empty after a boot, such as one in /run: sysctls, too, begin anew then.
package before

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// FileName is the file's name in the directory of the agent's socket.
const FileName = "sysctls-before.json"

// Sysctls are the earlier values by path below /proc/sys.
type Sysctls struct {
	file    string
	values  map[string]string
	seen    map[string]bool // paths that need no look any more
	unsaved bool            // the file lacks some of the values
}

// Open reads the file. One that does not exist is empty. Of one that can't be read, the error says so.
func Open(file string) (*Sysctls, error) {
	s := &Sysctls{file: file, values: map[string]string{}, seen: map[string]bool{}}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s.values)
	}
	if err != nil {
		return s, fmt.Errorf("reading earlier sysctls from %s: %w: remove the file if it is of no use", file, err)
	}
	return s, nil
}

// Note writes down the present values of those sysctls of a plan that the plan changes. It looks at each once, and
// leaves out those of the links in except, which are made and removed with the plan. If the file cannot be written, it
// tries again the next time.
func (s *Sysctls) Note(k item.Kernel, plan []hostplan.Item, except ...string) error {
	var fresh []hostplan.Item
	for _, i := range plan {
		c, ok := i.(hostplan.Sysctl)
		if _, noted := s.values[c.Path]; ok && !noted && !s.seen[c.Path] && !slices.Contains(except, c.Link) {
			fresh = append(fresh, c)
		}
	}
	if len(fresh) == 0 {
		return s.save()
	}
	have, err := k.Read(fresh)
	if err != nil {
		return err
	}
	for _, c := range item.Missing(fresh, have) {
		if was, ok := c.Have.(hostplan.Sysctl); ok {
			s.values[was.Path], s.unsaved = was.Value, true
		}
	}
	for _, h := range have {
		if c, ok := h.(hostplan.Sysctl); ok {
			s.seen[c.Path] = true
		}
	}
	return s.save()
}

func (s *Sysctls) save() error {
	if !s.unsaved {
		return nil
	}
	raw, err := json.MarshalIndent(s.values, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(s.file, append(raw, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("noting earlier sysctls in %s: %w", s.file, err)
	}
	s.unsaved = false
	return nil
}

// Items are the sysctls with their earlier values, sorted by path.
func (s *Sysctls) Items() (out []hostplan.Item) {
	for _, path := range slices.Sorted(maps.Keys(s.values)) {
		out = append(out, hostplan.Sysctl{Path: path, Value: s.values[path]})
	}
	return out
}
