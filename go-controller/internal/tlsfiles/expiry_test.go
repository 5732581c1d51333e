package tlsfiles

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

// The end of a certificate is read from a file that has its private key, too, and from the authority's.
func TestExpiry(t *testing.T) {
	now := time.Now()
	cert, key, err := pki.NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data ...[]byte) string {
		file := filepath.Join(dir, name)
		var all []byte
		for _, d := range data {
			all = append(all, d...)
		}
		if err := os.WriteFile(file, all, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	both, ca, none := write("both.pem", key, cert), write("ca.pem", cert), write("none.pem", key)
	at, err := Expiry(both)
	if err != nil || at.Before(now.Add(24*time.Hour)) {
		t.Fatalf("the expiry is %s, %v: want a day from now at least", at, err)
	}
	for _, file := range []string{none, filepath.Join(dir, "missing.pem")} {
		if _, err := Expiry(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v: want an error that names the file", file, err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	have := map[string]float64{}
	WatchExpiry(ctx, config.Keys{Cert: both, CACert: ca}, func(part string, at float64) {
		if have[part] = at; len(have) == 2 {
			cancel()
		}
	})
	want := float64(at.Unix())
	if have["certificate"] != want || have["authority"] != want {
		t.Errorf("reported: %v, want %v of both", have, want)
	}
}
