package sctp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Packet is an SCTP packet (RFC 9260 section 3).
type Packet struct {
	From, To uint16 // ports
	Tag      uint32 // verification tag
	Chunks   []Chunk
}

// Chunk is a chunk of a packet (RFC 9260 section 3.2). Value is the part after its length, without padding.
type Chunk struct {
	Type  ChunkType
	Flags byte
	Value []byte
}

// ChunkType is the type of a chunk.
type ChunkType byte

// The types of RFC 9260 section 3.2 that this package handles.
const (
	Data             ChunkType = 0
	Init             ChunkType = 1
	InitAck          ChunkType = 2
	Sack             ChunkType = 3
	Heartbeat        ChunkType = 4
	HeartbeatAck     ChunkType = 5
	Abort            ChunkType = 6
	Shutdown         ChunkType = 7
	ShutdownAck      ChunkType = 8
	Error            ChunkType = 9
	CookieEcho       ChunkType = 10
	CookieAck        ChunkType = 11
	ShutdownComplete ChunkType = 14
)

// flagT of ABORT and SHUTDOWN COMPLETE: the packet has the verification tag that its sender received, because the
// sender has no association (RFC 9260 section 8.5.1).
const flagT = 1

const (
	headerSize      = 12 // of a packet: ports, tag, checksum
	chunkHeaderSize = 4
	checksumAt      = 8
)

// ErrPacket is the error for bytes that are not an SCTP packet.
var ErrPacket = errors.New("not an SCTP packet")

// Marshal returns the packet's bytes, with its checksum.
func (p Packet) Marshal() []byte {
	b := binary.BigEndian.AppendUint16(nil, p.From)
	b = binary.BigEndian.AppendUint16(b, p.To)
	b = binary.BigEndian.AppendUint32(b, p.Tag)
	b = append(b, 0, 0, 0, 0)
	for _, c := range p.Chunks {
		b = append(b, byte(c.Type), c.Flags)
		b = binary.BigEndian.AppendUint16(b, uint16(chunkHeaderSize+len(c.Value)))
		b = append(b, c.Value...)
		b = append(b, make([]byte, padding(len(c.Value)))...)
	}
	binary.LittleEndian.PutUint32(b[checksumAt:], checksum(b))
	return b
}

// Parse parses a packet. The values of its chunks are slices of b.
//
// Errors: ErrPacket, with the reason.
func Parse(b []byte) (Packet, error) {
	if len(b) < headerSize {
		return Packet{}, fmt.Errorf("%w: %d bytes", ErrPacket, len(b))
	}
	if have, want := binary.LittleEndian.Uint32(b[checksumAt:]), checksum(b); have != want {
		return Packet{}, fmt.Errorf("%w: checksum %08x, want %08x", ErrPacket, have, want)
	}
	p := Packet{From: binary.BigEndian.Uint16(b), To: binary.BigEndian.Uint16(b[2:]), Tag: binary.BigEndian.Uint32(b[4:])}
	for b = b[headerSize:]; len(b) > 0; {
		if len(b) < chunkHeaderSize {
			return Packet{}, fmt.Errorf("%w: a chunk of %d bytes", ErrPacket, len(b))
		}
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < chunkHeaderSize || size > len(b) {
			return Packet{}, fmt.Errorf("%w: a chunk that says it has %d bytes, of %d", ErrPacket, size, len(b))
		}
		p.Chunks = append(p.Chunks, Chunk{ChunkType(b[0]), b[1], b[chunkHeaderSize:size:size]})
		b = b[min(size+padding(size), len(b)):]
	}
	return p, nil
}

// checksum returns the CRC32c of a packet, with its checksum field taken as zero. It is sent with the least significant
// byte first (RFC 9260 appendix A).
func checksum(b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, b[:checksumAt])
	sum = crc32.Update(sum, table, make([]byte, 4))
	return crc32.Update(sum, table, b[headerSize:])
}

// padding returns the number of bytes to the next multiple of four.
func padding(size int) int { return -size & 3 }
