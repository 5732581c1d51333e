package dbserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// A lost database must not cost running pods their network. ovn-northd would remove from the Southbound database what
// an empty Northbound one lacks, and ovn-controller the flows of what an empty Southbound one lacks. So:
//
//   - ovn-northd starts paused, and goes on when the Northbound database is filled. It is also paused before a server
//     with an empty database starts.
//   - The server of an empty Southbound database does not listen for clients before ovn-northd has filled it. Meanwhile
//     ovn-controller leaves the flows as they are.
//
// The master says that the Northbound database is filled by the sequence number nb_cfg, which ovn-northd copies to the
// Southbound one (ovn-nb(5), ovn-sb(5)).

// onHold is a file that whoever starts or pauses ovn-northd makes. Keep has ovn-northd go on, and removes it. A pause
// without it is an operator's, and stays.
func (l Layout) onHold() string { return filepath.Join(l.Run, "northd-on-hold") }

func (l Layout) northd() string { return filepath.Join(l.Run, "ovn-northd.ctl") }

// holdNorthd pauses ovn-northd because a database will be empty. f is the file that is there. ovn-northd would remove
// what is not in an empty Northbound database. And it would fill an empty Southbound one from what it remembers of a
// Northbound database that is perhaps lost, too.
func (m Member) holdNorthd(ctx context.Context, f file) error {
	if f.exists && (f.joined || !f.clustered) {
		return nil // its contents are used
	}
	if err := atomicfile.Write(m.Layout.onHold(), nil, 0o600); err != nil {
		return fmt.Errorf("having ovn-northd wait for the Northbound database: %w", err)
	}
	_, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", m.Layout.northd(), "pause")
	if err != nil && strings.Contains(err.Error(), "cannot connect") {
		return nil // it does not run, and will start paused
	}
	return err
}

// awaitContents finds out whether clients have to wait until the database is filled. It lets ovn-northd go on when the
// Northbound one is.
func (k *keeper) awaitContents(ctx context.Context, s status) error {
	concerns, held := s.leader && k.configured != s.leadership(), false
	if k.d.Short == "nb" {
		_, err := os.Stat(k.Layout.onHold())
		held = err == nil
		concerns = held && s.member
	}
	waited := k.waits
	k.waits = false
	if !concerns {
		k.logged = false
		return nil
	}
	g, err := k.global(ctx)
	switch {
	case err != nil:
		k.waits = waited || k.d.Short == "sb" // as long as nobody knows
		return err
	case held && g.filled:
		k.logged = false
		return k.releaseNorthd(ctx)
	case g.filled || k.d.Short == "sb" && g.listens:
		return nil
	}
	k.waits = true
	if !k.logged {
		k.logged = true
		k.log.Info("the database is empty: clients wait until the master and ovn-northd have filled it")
	}
	return nil
}

func (k *keeper) releaseNorthd(ctx context.Context) error {
	if _, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", k.Layout.northd(), "resume"); err != nil {
		return fmt.Errorf("letting ovn-northd go on: %w", err)
	}
	if err := os.Remove(k.Layout.onHold()); err != nil {
		return fmt.Errorf("letting ovn-northd go on: %w", err)
	}
	k.log.Info("the database is filled: ovn-northd goes on")
	return nil
}

// global is what the row of NB_Global or SB_Global says.
type global struct {
	filled  bool // the master has written all that it wants, and ovn-northd what follows from that
	listens bool // the server was told where to listen for clients
}

// global reads the row. A database without it is empty.
func (k *keeper) global(ctx context.Context) (g global, err error) {
	request, err := json.Marshal([]any{k.d.Name, map[string]any{"op": "select", "table": k.d.Global, "where": []any{},
		"columns": []string{"nb_cfg", "connections"}}})
	if err != nil {
		return g, fmt.Errorf("asking database %s whether it is filled: %w", k.d.Short, err)
	}
	out, err := output(ctx, "ovsdb-client", "--timeout=10", "--no-leader-only", "transact",
		"unix:"+k.Layout.Socket(k.d), string(request))
	if err != nil {
		return g, err
	}
	var answer []struct {
		Error string
		Rows  []struct {
			Connections [2]json.RawMessage // ["uuid", ID] or ["set", [...]] (RFC 7047 section 5.1)
			NBCfg       int64              `json:"nb_cfg"`
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer) != 1 || answer[0].Error != "" {
		return g, errors.Join(fmt.Errorf("asking database %s whether it is filled: answer %.200s", k.d.Short, out), err)
	}
	for _, r := range answer[0].Rows {
		g = global{filled: r.NBCfg > 0, listens: string(r.Connections[1]) != "[]"}
	}
	return g, nil
}
