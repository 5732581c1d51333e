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

// State is how far a NIC has come.
type State string

// The states of an undo file.
const (
	Moving    State = "moving"    // on the way, or not yet confirmed: to be taken back if nobody is at it
	Moved     State = "moved"     // it has been confirmed
	Returning State = "returning" // on the way back: to be finished
)

// Undo is the undo file: what the NIC had.
type Undo struct {
	Version  int            `json:"version"` // of this form: 1
	State    State          `json:"state"`
	NIC      string         `json:"nic"`
	Bridge   string         `json:"bridge"`
	Datapath string         `json:"datapath"` // datapath_type of the bridge
	Session  string         `json:"session"`  // the run that last changed State to Moving or Returning
	Saved    time.Time      `json:"saved"`    // when Device was read; its lifetimes count from here
	Device   nicmove.Device `json:"device"`
}

// undoVersion is the version of the undo file's form.
const undoVersion = 1

// saved is what the NIC had, with the lifetimes that are left at this time.
func (u Undo) saved(now time.Time) nicmove.Device {
	return u.Device.Aged(uint32(max(0, now.Sub(u.Saved)) / time.Second))
}

// Store keeps the undo files, one per NIC, in a directory.
type Store struct{ Dir string }

func (s Store) path(nic, suffix string) string { return filepath.Join(s.Dir, nic+suffix) }

// Load reads a NIC's undo file; ok is false when there is none.
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
		err = fmt.Errorf("it has version %d, NIC %q and bridge %q: want version %d and NIC %q", u.Version, u.NIC, u.Bridge, undoVersion, nic)
	}
	if err != nil {
		return u, false, fmt.Errorf("reading the undo file %s: %w", path, err)
	}
	return u, true, nil
}

// Save writes the file so that it is either there whole or as it was before,
// also after a loss of power.
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

// NICOf finds the NIC whose undo file names the bridge, "" for none.
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

// errLocked says that another process is at the NIC.
var errLocked = errors.New("another ovnkube is moving it at this moment (or its watchdog takes a move back): wait for it to end")

// Lock keeps others away from the NIC until unlock is called or the process
// ends. With wait it waits for them, else it fails with errLocked.
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
