package sctp

import "encoding/binary"

// initiation is the value of INIT and INIT ACK (RFC 9260 sections 3.3.2 and 3.3.3).
type initiation struct {
	tag    uint32 // the verification tag for packets to the sender
	tsn    uint32 // of the sender's first DATA
	cookie []byte // of INIT ACK
}

const (
	initiationSize = 16      // without parameters
	window         = 1 << 16 // receive window in bytes
	cookieParam    = 7       // State Cookie, a parameter of INIT ACK
	paramSize      = 4       // size of a parameter's header
)

func (i initiation) chunk(t ChunkType) Chunk {
	b := binary.BigEndian.AppendUint32(nil, i.tag)
	b = binary.BigEndian.AppendUint32(b, window)
	b = append(b, 0, 1, 0, 1) // one stream in each direction
	b = binary.BigEndian.AppendUint32(b, i.tsn)
	if t == InitAck {
		b = binary.BigEndian.AppendUint16(b, cookieParam)
		b = binary.BigEndian.AppendUint16(b, uint16(paramSize+len(i.cookie)))
		b = append(b, i.cookie...)
	}
	return Chunk{Type: t, Value: b}
}

// initiation parses the value of INIT and INIT ACK. ok is false if it is malformed.
func (c Chunk) initiation() (i initiation, ok bool) {
	if len(c.Value) < initiationSize {
		return i, false
	}
	i.tag, i.tsn = binary.BigEndian.Uint32(c.Value), binary.BigEndian.Uint32(c.Value[12:])
	for b := c.Value[initiationSize:]; len(b) >= paramSize; {
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < paramSize || size > len(b) {
			return i, false
		}
		if binary.BigEndian.Uint16(b) == cookieParam {
			i.cookie = b[paramSize:size]
		}
		b = b[min(size+padding(size), len(b)):]
	}
	return i, i.tag != 0 && (c.Type == Init || i.cookie != nil)
}

// Flags of DATA: it begins and ends a message (RFC 9260 section 3.3.1).
const wholeMessage = 3

const dataSize = 12 // size of the header: TSN, stream, sequence number, protocol

// MaxMessage is the largest size of a question or answer in bytes: its packet passes every tunnel of a network with an
// MTU of 1280.
const MaxMessage = 1024

func data(tsn uint32, message []byte) Chunk {
	b := binary.BigEndian.AppendUint32(nil, tsn)
	return Chunk{Type: Data, Flags: wholeMessage, Value: append(append(b, make([]byte, dataSize-len(b))...), message...)}
}

// message returns the payload of a DATA chunk. ok is false if that is not a whole message.
func (c Chunk) message() (tsn uint32, message []byte, ok bool) {
	if c.Flags&wholeMessage != wholeMessage || len(c.Value) <= dataSize {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(c.Value), c.Value[dataSize:], true
}

// sack acknowledges everything up to a TSN (RFC 9260 section 3.3.4).
func sack(tsn uint32) Chunk {
	b := binary.BigEndian.AppendUint32(nil, tsn)
	b = binary.BigEndian.AppendUint32(b, window)
	return Chunk{Type: Sack, Value: append(b, 0, 0, 0, 0)} // no gaps, no duplicates
}

// shutdown says that no more DATA follows, and acknowledges (RFC 9260 section 3.3.8).
func shutdown(tsn uint32) Chunk {
	return Chunk{Type: Shutdown, Value: binary.BigEndian.AppendUint32(nil, tsn)}
}

// acknowledges reports whether a SACK or SHUTDOWN acknowledges a TSN, in serial number arithmetic (RFC 9260 section
// 1.6).
func (c Chunk) acknowledges(tsn uint32) bool {
	return len(c.Value) >= 4 && int32(binary.BigEndian.Uint32(c.Value)-tsn) >= 0
}
