package ovsdb

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// A leader of a Raft cluster that is stopped and still connected is given up once another one leads, whether or not a
// transaction waits for it. The next session is with the new leader at once.
func TestStoppedLeader(t *testing.T) {
	raft := testkit.StartRaft(t, testkit.NBSchemas()["25.03"], DatabaseName)
	d := open(t, raft.Remotes()...)
	for _, sending := range []bool{false, true} {
		s := session(t, d)
		leader := raft.Leader()
		if s.conn.Address() != raft.Remotes()[leader] {
			t.Fatalf("the session is with %s, and %d leads", s.conn.Address(), leader)
		}
		raft.Signal(leader, syscall.SIGSTOP)
		stopped := time.Now()
		sent := make(chan error, 1)
		if sending {
			go func() { sent <- transactSwitch(t, s) }()
		} else {
			sent <- context.Canceled
		}
		<-s.ended.Done()
		given := time.Since(stopped)
		if err := <-sent; err == nil {
			t.Error("the transaction that the stopped leader got has succeeded")
		}
		testkit.Eventually(t, "another session", func() string {
			if now := d.Session(); now == nil || now == s {
				return fmt.Sprint(d.Failure())
			}
			return ""
		})
		again := d.Session()
		back := time.Since(stopped)
		t.Logf("sending %v: given up after %s, a session with the next leader after %s", sending, given, back)
		// 5 s are what docs/operate/master.md promises. The rest is for others that need a second vote, and a slow machine.
		const promised, slack = echoInterval + askOthers + askTimeout, 1400 * time.Millisecond
		if given > promised+slack || back >= given+reachTimeout ||
			again.conn.Address() == raft.Remotes()[leader] {
			t.Errorf("given up after %s, and after %s a session with %s", given, back, again.conn.Address())
		}
		raft.Signal(leader, syscall.SIGCONT)
		if err := transactSwitch(t, again); err != nil {
			t.Error(err)
		}
		testkit.Eventually(t, "the old leader follows", func() string {
			if now := raft.Leader(); now < 0 || now == leader {
				return fmt.Sprint(now)
			}
			return ""
		})
	}
}

// transactSwitch carries out a transaction that the server can't refuse.
func transactSwitch(t *testing.T, s *Session) error {
	t.Helper()
	_, err := s.Transact(context.Background(), []nb.Plan{plan(t, s, rows(s.schema))})
	return err
}

// A single server that works on a transaction for longer than it may otherwise be silent keeps its session, and no
// other one is opened.
func TestBusyServer(t *testing.T) {
	remote := testkit.StartOVSDB(t, testkit.NBSchemas()["25.03"])
	var log testkit.Buffer
	d := New(config.OVSDB{Addresses: []string{remote}}, nb.NewSchema(), slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	s, pid := session(t, d), serverOf(t, remote)
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	time.AfterFunc(echoTimeout+echoInterval+3*time.Second, func() { signal(syscall.SIGCONT) })
	if err := transactSwitch(t, s); err != nil {
		t.Errorf("the transaction of a busy server: %v", err)
	}
	if n := strings.Count(log.String(), "northbound database connected"); n != 1 || d.Session() != s {
		t.Errorf("%d sessions, want the first one:\n%s", n, log.String())
	}
	heard := time.Now()
	if err := s.conn.Echo(t.Context()); err != nil { // the echo that waited is answered, too: silence begins now
		t.Fatal(err)
	}
	signal(syscall.SIGSTOP)
	<-s.ended.Done()
	signal(syscall.SIGCONT)
	if took := time.Since(heard); took < echoTimeout {
		t.Errorf("without a transaction a silent server was given up after %s", took)
	}
	testkit.Eventually(t, "the reason in the log", func() string {
		if !strings.Contains(log.String(), "the server has not answered for 1") {
			return log.String()
		}
		return ""
	})
}

// serverOf is the process that listens on a unix socket.
func serverOf(t *testing.T, remote string) int {
	t.Helper()
	c, err := net.Dial("unix", strings.TrimPrefix(remote, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return int(peer.Pid)
}
