package nicmove

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan/nicmove"
)

// State says how far the move of a NIC has come.
type State string

// The states of an undo file.
const (
	Moving    State = "moving"    // in progress or not yet confirmed: undone if its process is gone
	Moved     State = "moved"     // confirmed
	Returning State = "returning" // the NIC is being restored: finished if its process is gone
)

// Undo is the content of an undo file: the NIC's configuration before the move.
type Undo struct {
	Version  int            `json:"version"` // of the file's format: 1
	State    State          `json:"state"`
	NIC      string         `json:"nic"`
	Bridge   string         `json:"bridge"`
	Datapath string         `json:"datapath"` // datapath_type of the bridge
	Session  string         `json:"session"`  // the run that last changed State to Moving or Returning
	Saved    time.Time      `json:"saved"`    // when Device was read; its lifetimes count from then
	Device   nicmove.Device `json:"device"`
}

// undoVersion is the version of the undo file's format.
const undoVersion = 1

// saved returns the NIC's configuration before the move, with the lifetimes that remain now.
func (u Undo) saved(now time.Time) nicmove.Device {
	return u.Device.Aged(uint32(max(0, now.Sub(u.Saved)) / time.Second))
}

// Store is a directory with an undo file for each NIC.
type Store struct{ Dir string }

func (s Store) path(nic, suffix string) string { return filepath.Join(s.Dir, nic+suffix) }

// Load reads a NIC's undo file. ok is false if there is none.
func (s Store) Load(nic string) (u Undo, ok bool, err error) {
	path := s.path(nic, ".json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return u, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &u)
	}
	if err == nil && (u.Version != undoVersion || u.NIC != nic || u.Bridge == "") {
		err = fmt.Errorf("it has version %d, NIC %q and bridge %q: want version %d and NIC %q",
			u.Version, u.NIC, u.Bridge, undoVersion, nic)
	}
	if err != nil {
		return u, false, fmt.Errorf("reading the undo file %s: %w", path, err)
	}
	return u, true, nil
}

// Save replaces the undo file atomically, so that it survives a loss of power.
func (s Store) Save(u Undo) error {
	u.Version = undoVersion
	text, err := json.MarshalIndent(u, "", "  ")
	if err == nil {
		err = os.MkdirAll(s.Dir, 0o755)
	}
	if err == nil {
		err = atomicfile.Write(s.path(u.NIC, ".json"), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the undo file: %w", err)
	}
	return nil
}

// Remove removes a NIC's undo file.
func (s Store) Remove(nic string) error {
	if err := os.Remove(s.path(nic, ".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the undo file: %w", err)
	}
	return atomicfile.SyncDir(s.Dir)
}

// NICOf finds the NIC whose undo file names the bridge. It returns "" if there is none.
func (s Store) NICOf(bridge string) (string, error) {
	files, err := filepath.Glob(s.path("*", ".json"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		nic := filepath.Base(f[:len(f)-len(".json")])
		u, ok, err := s.Load(nic)
		if err != nil {
			return "", err
		}
		if ok && u.Bridge == bridge {
			return nic, nil
		}
	}
	return "", nil
}

// errLocked says that another process is changing the NIC.
var errLocked = errors.New("another ovnkube is moving it at this moment (or its watchdog undoes a move): wait " +
	"for it to end")

// Lock keeps other processes from changing the NIC until unlock is called or this process ends. If another process has
// the lock, it waits, or without wait fails with errLocked.
func (s Store) Lock(nic string, wait bool) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making --state-dir: %w", err)
	}
	f, err := os.OpenFile(s.path(nic, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", nic, err)
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	err = unix.Flock(int(f.Fd()), how)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", nic, err)
	}
	return func() { f.Close() }, nil
}
