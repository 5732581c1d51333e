package shim

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
)

// agent listens on a socket and passes each connection to serve.
func agent(t *testing.T, serve func(net.Conn)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return socket
}

// Pods can end while there is no agent.
func TestDelWithoutAgent(t *testing.T) {
	stale := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{"/nowhere/s", stale} {
		p := plugin{out: io.Discard, connect: time.Second, answer: time.Second}
		if err := p.forward(protocol.Del, &skel.CmdArgs{ContainerID: "c",
			StdinData: []byte(`{"socket":"` + socket + `"}`)}); err != nil {
			t.Errorf("DEL with nobody at %s: %v", socket, err)
		}
	}
}

// The runtime gets a clear error if the agent does not answer properly.
func TestNoAnswer(t *testing.T) {
	silent := agent(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) // until the plugin goes
	rude := agent(t, func(net.Conn) {})
	garbled := agent(t, func(c net.Conn) {
		var r protocol.Request
		if err := protocol.Read(c, &r); err != nil {
			t.Error(err)
		}
		_, _ = c.Write([]byte("\xff\xff\xff\xff"))
	})
	for _, c := range []struct {
		socket, command, conf string
		code                  uint
		words                 []string
	}{
		{silent, protocol.Add, `{}`, 11, []string{"did not answer in time", silent, "log of `ovnkube node`"}},
		{silent, protocol.Status, `{}`, 50, []string{"did not answer in time"}},
		{rude, protocol.Del, `{}`, 11, []string{"went away"}},
		{garbled, protocol.Add, `{}`, 11, []string{"receiving the message", "at most 1048576"}},
		{"/nowhere/s", protocol.Add, `{}`, 11, []string{"node agent is not running", "/nowhere/s", "start `ovnkube node`"}},
		{"/nowhere/s", protocol.Status, `{}`, 50, []string{"node agent is not running"}},
		{silent, protocol.Add, `{"x":"` + strings.Repeat("x", protocol.MaxSize) + `"}`, 7,
			[]string{"network configuration is too large", "at most 1048576"}},
		{silent, protocol.Add, `[]`, 6, []string{"decoding the network configuration"}},
	} {
		conf := c.conf
		if strings.HasPrefix(conf, "{") {
			conf = strings.TrimSuffix(`{"socket":"`+c.socket+`",`+conf[1:], ",}")
			if !strings.HasSuffix(conf, "}") {
				conf += "}"
			}
		}
		var out bytes.Buffer
		p := plugin{out: &out, connect: time.Second, answer: 50 * time.Millisecond}
		err := p.forward(c.command, &skel.CmdArgs{ContainerID: "c", StdinData: []byte(conf)})
		var e *types.Error
		if !errors.As(err, &e) || e.Code != c.code || out.Len() > 0 {
			t.Errorf("%s to %s: %v, printed %q; want code %d and nothing printed", c.command, c.socket, err, out.String(),
				c.code)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(e.Error(), w) {
				t.Errorf("%s to %s: %q does not say %q", c.command, c.socket, e, w)
			}
		}
	}
}

// The plugin prints the agent's result, or fails with the agent's error.
func TestAnswers(t *testing.T) {
	answer := protocol.Response{Result: []byte(`{"cniVersion":"1.1.0"}`)}
	socket := agent(t, func(c net.Conn) {
		var r protocol.Request
		if err := protocol.Read(c, &r); err != nil || r.ContainerID != "c" {
			t.Errorf("request %+v: %v", r, err)
		}
		if err := protocol.Write(c, answer); err != nil {
			t.Error(err)
		}
	})
	var out bytes.Buffer
	p := plugin{out: &out, connect: time.Second, answer: 10 * time.Second}
	args := &skel.CmdArgs{ContainerID: "c", StdinData: []byte(`{"socket":"` + socket + `"}`)}
	if err := p.forward(protocol.Add, args); err != nil || out.String() != `{"cniVersion":"1.1.0"}`+"\n" {
		t.Errorf("ADD: %v, printed %q", err, out.String())
	}
	answer = protocol.Response{Error: &protocol.Error{Code: 101, Msg: "broken", Details: "here"}}
	var e *types.Error
	if err := p.forward(protocol.Check, args); !errors.As(err, &e) || e.Code != 101 || e.Msg != "broken" ||
		e.Details != "here" {
		t.Errorf("CHECK: %v", err)
	}
}
