package replica

import (
	"net"
	"strings"
	"testing"
)

// FuzzMessage holds that no message crashes the program, whatever monitor it is for.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"id":null,"method":"update3","params":[{"id":"m"},"1",{"T":{"r":{"insert":` + full + `}}}]}`))
	f.Add([]byte(`{"method":"update2","params":[{"id":"m"},{"T":{"r":{"modify":{"pairs":["map",[["k","v"]]]}}}}]}`))
	f.Add([]byte(`{"id":1,"error":{"error":"a"},"result":[["uuid","x"]]}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		y := newCopy(Sink{})
		for _, t := range things() {
			y.tables[t.Name], _ = newTable(t)
		}
		client, server := net.Pipe()
		c := &Conn{net: client, done: make(chan struct{}), calls: map[uint64]*call{}, monitors: map[string]*Copy{"m": y}}
		d := decoder(strings.NewReader(string(raw)))
		for c.message(d) == nil && d.InputOffset() < int64(len(raw)) {
		}
		c.fail(ErrClosed)
		server.Close()
	})
}
