package byhand

import (
	"context"
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

// before is the state of the machine before a command. The inverse restores it.
type before struct {
	ExternalIDs  map[string]string      `json:"external_ids,omitempty"`  // of the row, as they were; "" for absent
	Bridges      []string               `json:"bridges,omitempty"`       // that were not there
	Ports        []string               `json:"ports,omitempty"`         // that were not there
	Sysctls      map[string]string      `json:"sysctls,omitempty"`       // as they were, by path
	Masquerade   *hostplan.Masquerade   `json:"masquerade,omitempty"`    // that was not there
	Hairpin      *hostplan.Hairpin      `json:"hairpin,omitempty"`       // that was not there
	AntiSpoof    *hostplan.AntiSpoof    `json:"anti_spoof,omitempty"`    // that was not there
	DatabaseDrop *hostplan.DatabaseDrop `json:"database_drop,omitempty"` // that was not there
}

func (h *host) file(what string) string {
	return filepath.Join(h.StateDir, fmt.Sprintf("%s-%s.json", h.Node.Name, what))
}

// remember records the state before a plan is carried out. What an earlier run recorded
// stays.
func (h *host) remember(what string, plan hostplan.Plan, have []hostplan.Item) error {
	b, err := h.recorded(what)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := h.note(&b, plan, have); err != nil {
		return err
	}
	return writeFile(h.file(what), b)
}

// recorded is what an earlier run recorded. The error is fs.ErrNotExist when there was none.
func (h *host) recorded(what string) (before, error) {
	b := before{ExternalIDs: map[string]string{}, Sysctls: map[string]string{}}
	raw, err := os.ReadFile(h.file(what))
	if err != nil {
		return b, fmt.Errorf("reading what was there before: %w", err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("reading what was there before from %s: %w: remove the file if it is of no use",
			h.file(what), err)
	}
	return b, nil
}

// note adds what a plan will change.
func (h *host) note(b *before, plan hostplan.Plan, have []hostplan.Item) error {
	keys := slices.Concat(slices.Collect(maps.Keys(plan.OVS.ExternalIDs)), slices.Collect(maps.Keys(plan.OVS.Defaults)))
	for _, k := range keys {
		was, err := h.ovs.ExternalID(k)
		if err != nil {
			return err
		}
		if _, noted := b.ExternalIDs[k]; !noted {
			b.ExternalIDs[k] = was
		}
	}
	for _, r := range plan.OVS.Bridges {
		if !h.ovs.HasBridge(r.Name) && !slices.Contains(b.Bridges, r.Name) {
			b.Bridges = append(b.Bridges, r.Name)
		}
	}
	for _, p := range plan.OVS.Ports {
		if _, there := h.ovs.Interface(p.Name); !there && !slices.Contains(b.Ports, p.Name) {
			b.Ports = append(b.Ports, p.Name)
		}
	}
	was := map[string]hostplan.Item{}
	for _, i := range have {
		was[i.Key()] = i
	}
	for _, i := range plan.Host {
		switch i := i.(type) {
		case hostplan.Sysctl:
			old, there := was[i.Key()].(hostplan.Sysctl)
			if _, noted := b.Sysctls[i.Path]; there && !noted && old.Value != i.Value {
				b.Sysctls[i.Path] = old.Value
			}
		case hostplan.Masquerade:
			if was[i.Key()] == nil {
				b.Masquerade = &i
			}
		case hostplan.Hairpin:
			if was[i.Key()] == nil {
				b.Hairpin = &i
			}
		case hostplan.AntiSpoof:
			if was[i.Key()] == nil {
				b.AntiSpoof = &i
			}
		case hostplan.DatabaseDrop:
			if was[i.Key()] == nil {
				b.DatabaseDrop = &i
			}
		}
	}
	return nil
}

// writeFile returns when the record is on the disk.
func writeFile(name string, b before) error {
	raw, err := json.MarshalIndent(b, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(name, append(raw, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("noting what was there before in %s: %w", name, err)
	}
	return nil
}

// undoAnyway is undo, also when the time for reaching the database has run out: a
// machine that an init has cut off must be able to get back.
func (h *host) undoAnyway(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), linkTimeout)
	defer cancel()
	return h.undo(ctx, what)
}

// undo restores the state before the command.
func (h *host) undo(ctx context.Context, what string) error {
	b, err := h.recorded(what)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(h.Out, "Nothing is noted in %s: this machine is left as it is.\n", h.file(what))
		return nil
	}
	if err != nil {
		return err
	}
	if err := h.restoreOVS(ctx, b); err != nil {
		return err
	}
	if err := h.restoreKernel(b); err != nil {
		return err
	}
	if h.DryRun {
		return nil
	}
	if err := os.Remove(h.file(what)); err != nil {
		return fmt.Errorf("forgetting what was there before: %w", err)
	}
	return nil
}

func (h *host) restoreOVS(ctx context.Context, b before) error {
	remove := func(kind string, list []string, there func(string) bool,
		do func(context.Context, string) (bool, error)) error {
		for _, name := range list {
			if !there(name) {
				continue
			}
			fmt.Fprintf(h.Out, "- %s %s\n", kind, name)
			if h.DryRun {
				continue
			}
			if _, err := do(ctx, name); err != nil {
				return fmt.Errorf("removing %s %s: %w", kind, name, err)
			}
		}
		return nil
	}
	isPort := func(name string) bool { _, ok := h.ovs.Interface(name); return ok }
	if err := remove("port", b.Ports, isPort, h.ovs.RemovePort); err != nil {
		return err
	}
	want := hostplan.OVS{ExternalIDs: b.ExternalIDs}
	changes, err := h.ovs.Preview(want)
	if err == nil && !h.DryRun {
		changes, err = h.ovs.Converge(ctx, want)
	}
	if err != nil {
		return err
	}
	printLines(h.Out, changes)
	return remove("bridge", b.Bridges, h.ovs.HasBridge, h.ovs.RemoveBridge)
}

func (h *host) restoreKernel(b before) error {
	var changes []item.Change
	if b.Masquerade != nil {
		changes = append(changes, item.Change{Have: *b.Masquerade})
	}
	if b.Hairpin != nil {
		changes = append(changes, item.Change{Have: *b.Hairpin})
	}
	if b.AntiSpoof != nil {
		changes = append(changes, item.Change{Have: *b.AntiSpoof})
	}
	if b.DatabaseDrop != nil {
		changes = append(changes, item.Change{Have: *b.DatabaseDrop})
	}
	for _, path := range slices.Sorted(maps.Keys(b.Sysctls)) {
		changes = append(changes, item.Change{Want: hostplan.Sysctl{Path: path, Value: b.Sysctls[path]}})
	}
	for _, c := range changes {
		fmt.Fprintln(h.Out, c)
		if h.DryRun {
			continue
		}
		if err := h.kernel.Apply(c); err != nil {
			return fmt.Errorf("applying %q: %w", c, err)
		}
	}
	return nil
}
