package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// An agent ends when the master has changed settings that the agent has from it. It goes on while the settings cannot
// be read, contradict a flag, or are wrong: it would not start again.
func TestFollowSettings(t *testing.T) {
	before := config.Settings{"cluster-subnets": "10.0.0.0/16/24", "join-subnet": "100.64.0.0/16", "mtu": "1400"}
	with := func(flag, value string) config.Settings {
		s := maps.Clone(before)
		s[flag] = value
		return s
	}
	both := with("join-subnet", "100.65.0.0/16")
	both["mtu"] = "1500"
	answers := []config.Settings{nil, before, with("mtu", "1500"), with("mtu", "1500"), both, with("join-subnet", "x"),
		with("join-subnet", "100.65.0.0/16")}
	var log bytes.Buffer
	read := 0
	f := follower{own: before, before: before, given: func(flag string) bool { return flag == "mtu" },
		log: slog.New(slog.NewTextHandler(&log, nil)),
		read: func(context.Context) (config.Settings, error) {
			read++
			if answers[read-1] == nil {
				return nil, errors.New("no answer")
			}
			return answers[read-1], nil
		}}
	err := f.run(t.Context(), time.Millisecond)
	want := `the master's settings have changed: --join-subnet is "100.64.0.0/16", the master has "100.65.0.0/16"`
	if !errors.Is(err, errOutdated) || err.Error() != want || read != len(answers) {
		t.Errorf("after %d reads: %v, want %s after %d", read, err, want, len(answers))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		`flags="--mtu is \"1400\", the master has \"1500\""`, `; --join-subnet is`, "changed to wrong ones",
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d of the log: want %s in\n%s", i, want, log.String())
		}
	}
	if len(lines) != 3 {
		t.Errorf("log:\n%s\nwant 3 lines", log.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.run(ctx, time.Hour); err != nil {
		t.Errorf("when the agent ends: %v", err)
	}
}
