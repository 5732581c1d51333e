package sctp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

// bitwise is CRC32c as in RFC 9260 appendix A, bit by bit.
func bitwise(b []byte) uint32 {
	sum := ^uint32(0)
	for _, x := range b {
		sum ^= uint32(x)
		for range 8 {
			odd := sum & 1
			sum >>= 1
			if odd == 1 {
				sum ^= 0x82f63b78 // 0x1edc6f41, its bits in the other order
			}
		}
	}
	return ^sum
}

func TestChecksum(t *testing.T) {
	// RFC 3720 appendix B.4: 32 bytes of zeroes, including those of the checksum.
	if have := checksum(make([]byte, 32)); have != 0x8a9136aa {
		t.Errorf("32 zeroes have the checksum %08x, want 8a9136aa", have)
	}
	b := Packet{From: 40000, To: 80, Tag: 1, Chunks: []Chunk{{Type: CookieAck}}}.Marshal()
	sum := bytes.Clone(b[8:12])
	copy(b[8:], []byte{0, 0, 0, 0})
	if want := binary.LittleEndian.AppendUint32(nil, bitwise(b)); !bytes.Equal(sum, want) {
		t.Errorf("it is sent as % x, want % x", sum, want)
	}
}

func TestPacket(t *testing.T) {
	want := Packet{From: 40000, To: 80, Tag: 0x12345678, Chunks: []Chunk{
		initiation{tag: 1, tsn: 2, cookie: []byte("cookie.")}.chunk(InitAck), data(3, []byte("four5")),
		{Type: CookieAck, Value: []byte{}},
		{Type: Abort, Flags: flagT, Value: []byte{1}},
	}}
	b := want.Marshal()
	if len(b)%4 != 0 {
		t.Errorf("it has %d bytes, want a multiple of four", len(b))
	}
	have, err := Parse(b)
	if err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("%v\nhave %+v\nwant %+v", err, have, want)
	}
	if i, ok := have.Chunks[0].initiation(); !ok || i.tag != 1 || i.tsn != 2 || string(i.cookie) != "cookie." {
		t.Errorf("INIT ACK is %+v, %v", i, ok)
	}
	if tsn, message, ok := have.Chunks[1].message(); !ok || tsn != 3 || string(message) != "four5" {
		t.Errorf("DATA is %d %q, %v", tsn, message, ok)
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 4
		if _, err := Parse(damaged); !errors.Is(err, ErrPacket) {
			t.Errorf("with byte %d damaged: %v, want ErrPacket", i, err)
		}
	}
}

// Bytes with a correct checksum need not be a packet.
func TestNoPacket(t *testing.T) {
	for name, rest := range map[string]string{
		"half a chunk's header": "\x00\x00", "a chunk of no bytes": "\x00\x00\x00\x00",
		"a chunk of three":                   "\x00\x00\x00\x03",
		"a chunk that ends after the packet": "\x00\x00\x00\x09\x01\x02\x03\x04",
	} {
		b := append(make([]byte, headerSize), rest...)
		binary.LittleEndian.PutUint32(b[checksumAt:], checksum(b))
		if p, err := Parse(b); !errors.Is(err, ErrPacket) {
			t.Errorf("%s: %+v, %v; want ErrPacket", name, p, err)
		}
	}
	if _, err := Parse(make([]byte, headerSize-1)); !errors.Is(err, ErrPacket) {
		t.Errorf("eleven bytes: %v, want ErrPacket", err)
	}
}

func TestNoInitiation(t *testing.T) {
	for name, c := range map[string]Chunk{
		"too short":                     {Type: Init, Value: make([]byte, initiationSize-1)},
		"no tag":                        initiation{tsn: 1}.chunk(Init),
		"INIT ACK without a cookie":     {Type: InitAck, Value: initiation{tag: 1}.chunk(Init).Value},
		"a parameter of no bytes":       {Type: Init, Value: append(initiation{tag: 1}.chunk(Init).Value, 0, 8, 0, 0)},
		"a parameter that is cut short": {Type: Init, Value: append(initiation{tag: 1}.chunk(Init).Value, 0, 8, 0, 9)},
	} {
		if i, ok := c.initiation(); ok {
			t.Errorf("%s is taken as %+v", name, i)
		}
	}
}

func TestAcknowledges(t *testing.T) {
	for _, c := range []struct {
		acknowledged, tsn uint32
		want              bool
	}{{5, 5, true}, {6, 5, true}, {4, 5, false}, {1, 0xffffffff, true}, {0xffffffff, 1, false}} {
		if have := sack(c.acknowledged).acknowledges(c.tsn); have != c.want {
			t.Errorf("up to %d, %d is acknowledged: %v", c.acknowledged, c.tsn, have)
		}
	}
}
