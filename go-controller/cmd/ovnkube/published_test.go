package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// An agent ends when the master has changed settings that the agent has from it, and goes on when a flag gave them, or
// when the settings cannot be read.
func TestFollowSettings(t *testing.T) {
	before := config.Settings{"join-subnet": "100.64.0.0/16", "max-service-vips": "4096"}
	more := config.Settings{"join-subnet": "100.65.0.0/16", "max-service-vips": "5"}
	var log bytes.Buffer
	read := 0
	f := follower{own: before, before: before, given: func(flag string) bool { return flag == "max-service-vips" },
		log: slog.New(slog.NewTextHandler(&log, nil)),
		read: func(context.Context) (config.Settings, error) {
			switch read++; read {
			case 1:
				return nil, errors.New("no answer")
			case 2:
				return before, nil
			case 3, 4:
				return config.Settings{"join-subnet": "100.64.0.0/16", "max-service-vips": "5"}, nil
			default:
				return more, nil
			}
		}}
	err := f.run(t.Context(), time.Millisecond)
	want := `the master's settings have changed: --join-subnet is "100.64.0.0/16", the master has "100.65.0.0/16"`
	if !errors.Is(err, errOutdated) || err.Error() != want || read != 5 {
		t.Errorf("after %d reads: %v, want %s", read, err, want)
	}
	if strings.Count(log.String(), "\n") != 1 ||
		!strings.Contains(log.String(), `--max-service-vips is \"4096\", the master has \"5\"`) {
		t.Errorf("log:\n%s\nwant one line about --max-service-vips", log.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.run(ctx, time.Hour); err != nil {
		t.Errorf("when the agent ends: %v", err)
	}
}
