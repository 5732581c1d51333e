package dbserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// A lost database must not cost running pods their network. ovn-northd would remove from the Southbound database what
// an empty Northbound one lacks, and ovn-controller the flows of what an empty Southbound one lacks. So:
//
//   - ovn-northd is paused before a server with an empty Northbound database starts, until the master has filled that.
//   - The server of an empty Southbound database does not listen for clients before ovn-northd has filled it. Meanwhile
//     ovn-controller leaves the flows as they are.
//
// The master says that the Northbound database is filled by the sequence number nb_cfg, which ovn-northd copies to the
// Southbound one (ovn-nb(5), ovn-sb(5)).

// OnHold is the name of a file in the directory of sockets. While it is there, ovn-northd must start paused.
const OnHold = "northd-on-hold"

func (l Layout) onHold() string { return filepath.Join(l.Run, OnHold) }

func (l Layout) northd() string { return filepath.Join(l.Run, "ovn-northd.ctl") }

// holdNorthd pauses ovn-northd, also if it starts later, because the Northbound database will be empty. f is the file
// that is there.
func (m Member) holdNorthd(ctx context.Context, d Database, f file) error {
	if d.Short != "nb" || f.exists && (f.joined || !f.clustered) {
		return nil // its contents are used
	}
	if err := atomicfile.Write(m.Layout.onHold(), nil, 0o600); err != nil {
		return fmt.Errorf("having ovn-northd wait for the Northbound database: %w", err)
	}
	if _, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", m.Layout.northd(), "pause"); err != nil {
		m.Log.Debug("ovn-northd does not run yet", "error", err)
	}
	return nil
}

// awaitContents finds out whether clients have to wait until the database is filled. It lets ovn-northd go on when the
// Northbound one is.
func (k *keeper) awaitContents(ctx context.Context, s status) error {
	held := false
	if k.d.Short == "nb" {
		_, err := os.Stat(k.Layout.onHold())
		held = err == nil
	}
	k.waits = false
	if !s.member || k.d.Short == "nb" && !held || k.d.Short == "sb" && (!s.leader || k.configured == s.leadership()) {
		return nil
	}
	g, err := k.global(ctx)
	if err != nil {
		return err
	}
	if g.filled || k.d.Short == "sb" && g.listens {
		return k.releaseNorthd(ctx, held)
	}
	k.waits = true
	if !k.told {
		k.told = true
		k.log.Info("the database is empty: it waits until it is filled")
	}
	return nil
}

func (k *keeper) releaseNorthd(ctx context.Context, held bool) error {
	if k.told {
		k.told = false
		k.log.Info("the database is filled")
	}
	if !held {
		return nil
	}
	if _, err := output(ctx, "ovs-appctl", "--timeout=5", "-t", k.Layout.northd(), "resume"); err != nil {
		return fmt.Errorf("letting ovn-northd go on: %w", err)
	}
	if err := os.Remove(k.Layout.onHold()); err != nil {
		return fmt.Errorf("letting ovn-northd go on: %w", err)
	}
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
	out, err := output(ctx, "ovsdb-client", "--timeout=10", "transact", "unix:"+k.Layout.Socket(k.d), string(request))
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
