package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// guarded is a log that another goroutine writes.
type guarded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(b)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// A server that can open no more files goes on when it can, and then serves who has waited.
func TestServeWithoutFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(client) }()
	was, restore := testkit.OpenFiles(t)
	defer restore()
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := &guarded{}, make(chan error, 1)
	go func() { ended <- (&Server{Log: slog.New(slog.NewTextHandler(log, nil))}).Serve(ctx, l) }()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Connect(client, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a line of the log", func() string {
		if !strings.Contains(log.String(), "too many open files") {
			return log.String()
		}
		return ""
	})
	restore()
	if _, err := syscall.Write(client, []byte("no request")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Shutdown(client, syscall.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 1000)
	n, err := syscall.Read(client, answer)
	if err != nil || !bytes.Contains(answer[:n], []byte(`"code"`)) {
		t.Errorf("the answer is %q, %v, want an error", answer[:n], err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("the server ended with %v", err)
	}
}
