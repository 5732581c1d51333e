package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/northbound-net/northbound/test/sandbox/pki"
)

// Replay stands between masters and the API server. Once it has recorded what watches begin with, all objects, it
// answers new watches from memory: a master that starts costs the API server nothing but its patches. It passes on all
// other requests. Watches that it answers say nothing of later changes.
type Replay struct {
	Kubeconfig string // for masters that are to use it

	admin  *rest.Config
	server *http.Server
	proxy  *httputil.ReverseProxy

	mu       sync.Mutex
	requests map[string]*http.Request // watches that were asked for, by URL and type of the answer
	records  map[string]*record       // nil for one that the API server refuses, such as one of a kind that it has not
	missed   []string                 // watches that came after Record and were not recorded
}

// record is the answer to a watch, up to the bookmark that ends the initial objects.
type record struct {
	contentType string
	body        []byte
}

// StartReplay starts a Replay that has recorded nothing yet.
func (r *Rig) StartReplay() (*Replay, error) {
	transport, err := rest.TransportFor(r.admin)
	if err != nil {
		return nil, fmt.Errorf("preparing a client: %w", err)
	}
	to, err := url.Parse(r.admin.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's URL: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the replay: %w", err)
	}
	p := &Replay{Kubeconfig: filepath.Join(r.Dir, "replay.kubeconfig"), admin: r.admin,
		requests: map[string]*http.Request{}, records: map[string]*record{},
		proxy: &httputil.ReverseProxy{Transport: transport, FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	dir := filepath.Join(r.Dir, "replay")
	if err := p.identify(dir, listener.Addr().String()); err != nil {
		return nil, errors.Join(fmt.Errorf("making certificates: %w", err), listener.Close())
	}
	go func() {
		_ = p.server.ServeTLS(listener, filepath.Join(dir, "replay.crt"), filepath.Join(dir, "replay.key"))
	}()
	return p, nil
}

// identify writes the Replay's certificate to a directory, and the kubeconfig of masters.
func (p *Replay) identify(dir, addr string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.New(dir)
	if err != nil {
		return err
	}
	return errors.Join(
		ca.Server(dir, "replay", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, []string{"localhost"}),
		ca.Kubeconfig(p.Kubeconfig, "https://"+addr, "admin", "system:masters"))
}

// Close ends the Replay and the connections to it.
func (p *Replay) Close() error { return p.server.Close() }

// ServeHTTP implements http.Handler.
func (p *Replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("sendInitialEvents") != "true" {
		p.proxy.ServeHTTP(w, req)
		return
	}
	key := watchKey(req)
	p.mu.Lock()
	recorded, known := p.records[key]
	p.requests[key] = req.Clone(context.Background())
	if !known && len(p.records) > 0 {
		p.missed = append(p.missed, key)
	}
	p.mu.Unlock()
	if recorded == nil {
		p.proxy.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Type", recorded.contentType)
	if _, err := w.Write(recorded.body); err != nil {
		return
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	<-req.Context().Done()
}

// Missed lists the watches that the API server had to answer although others were recorded.
func (p *Replay) Missed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.missed)
}

// watchKey tells watches apart: by what they are about, and how the answer is encoded. How long they last is random.
func watchKey(req *http.Request) string {
	q := req.URL.Query()
	q.Del("timeoutSeconds")
	q.Del("timeout") // by typed clients
	return req.URL.Path + "?" + q.Encode() + " " + req.Header.Get("Accept")
}

// Record asks the API server what every watch that a master has asked for begins with now, and answers with that from
// now on.
func (p *Replay) Record(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.admin)
	if err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	p.mu.Lock()
	requests := maps.Clone(p.requests)
	p.mu.Unlock()
	for key, req := range requests {
		rec, err := p.record(ctx, client, req)
		if err != nil {
			return fmt.Errorf("recording %s: %w", key, err)
		}
		p.mu.Lock()
		p.records[key] = rec
		p.mu.Unlock()
	}
	return nil
}

// record is what a watch begins with; nil if the API server refuses it.
func (p *Replay) record(ctx context.Context, client *http.Client, req *http.Request) (*record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // it ends the watch
	again, err := http.NewRequestWithContext(ctx, http.MethodGet, p.admin.Host+req.URL.RequestURI(), nil)
	if err != nil {
		return nil, err
	}
	again.Header.Set("Accept", req.Header.Get("Accept"))
	resp, err := client.Do(again)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	contentType, next := resp.Header.Get("Content-Type"), line
	if strings.Contains(contentType, "protobuf") {
		next = frame
	}
	var all bytes.Buffer
	for from := bufio.NewReader(resp.Body); ; {
		event, err := next(from)
		if err != nil {
			return nil, err
		}
		all.Write(event)
		if bytes.Contains(event, []byte("BOOKMARK")) && bytes.Contains(event, []byte("k8s.io/initial-events-end")) {
			return &record{contentType, all.Bytes()}, nil
		}
	}
}

// frame reads one event that is encoded as protobuf: its length in 4 bytes, then the event. It returns both.
func frame(r *bufio.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	out := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	_, err := io.ReadFull(r, out[len(head):])
	return out, err
}

// line reads one event that is encoded as JSON, to the end of its line.
func line(r *bufio.Reader) ([]byte, error) { return r.ReadBytes('\n') }
