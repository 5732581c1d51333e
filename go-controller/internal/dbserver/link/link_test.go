package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// The machines n1 and n2, and a stranger.
const (
	first, second, stranger = "127.0.0.1", "127.0.0.2", "127.0.0.9"
)

// certificate is one that both machines have.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// machines are two links. What is sent to n2 comes back.
func machines(t *testing.T) (n1 *Link) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "link") // a socket's path has at most 107 characters
	if err != nil {
		t.Fatal(err)
	}
	port, pair := freePort(t), certificate(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	echo, err := net.Listen("unix", filepath.Join(dir, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { echo.Close() }) //nolint:errcheck // nothing is written to it
	running.Go(func() {
		for c, err := echo.Accept(); err == nil; c, err = echo.Accept() {
			go func() {
				io.Copy(c, c) //nolint:errcheck // until the other side ends
				c.Close()     //nolint:errcheck // the other side has seen the end
			}()
		}
	})
	for node, address := range map[string]string{"n1": first, "n2": second} {
		l := &Link{Listen: address, Port: port, Node: node, Log: slog.New(slog.DiscardHandler),
			Channels: []Channel{{Protocol: "echo", Target: filepath.Join(dir, "echo"),
				Source: func(to string) string { return filepath.Join(dir, node+"-"+to) }}},
			TLS: func() (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
					nil
			},
			Addresses: func() map[string][]netip.Addr {
				return map[string][]netip.Addr{"n1": {netip.MustParseAddr(first)},
					"n2": {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr(second)}}
			},
		}
		running.Go(func() { l.Lead(ctx, time.Millisecond) })
		running.Go(func() {
			if err := l.Serve(ctx); err != nil {
				t.Errorf("Serve on %s: %v", node, err)
			}
		})
		if node == "n1" {
			n1 = l
		}
	}
	return n1
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", first+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing is written to it
	return l.Addr().(*net.TCPAddr).Port
}

// answered tells whether n2 answers a connection of n1.
func answered(l *Link) string {
	c, err := net.Dial("unix", l.Channels[0].Source("n2"))
	if err != nil {
		return err.Error()
	}
	defer c.Close() //nolint:errcheck // it was only read
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err.Error()
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return err.Error()
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "hello" {
		return strconv.Quote(string(answer)) + " is the answer"
	}
	return ""
}

// TestForward carries data both ways, at the second address if the first does not answer.
func TestForward(t *testing.T) {
	l := machines(t)
	testkit.Eventually(t, "an answer of n2", func() string { return answered(l) })
}

// TestIdleStrangers do not keep the other machines out. One that is too many is turned away.
func TestIdleStrangers(t *testing.T) {
	l := machines(t)
	testkit.Eventually(t, "an answer of n2", func() string { return answered(l) })
	to := net.JoinHostPort(second, strconv.Itoa(l.Port))
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(stranger)}}
	refused := 0
	for range maxHandshakes + 5 {
		c, err := d.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // it sent nothing
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			refused++
		}
	}
	if refused != 5 {
		t.Errorf("%d of %d idle connections were refused, want 5", refused, maxHandshakes+5)
	}
	if why := answered(l); why != "" {
		t.Errorf("n1 is kept out by strangers: %s", why)
	}
}
