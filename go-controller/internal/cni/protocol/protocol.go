package protocol

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Timeouts. The agent answers within ServeTimeout. The plugin waits a little longer, so that the user sees the agent's
// error.
const (
	ServeTimeout  = 60 * time.Second
	AnswerTimeout = ServeTimeout + 15*time.Second
)

// MaxSize limits the size of a message in bytes. A network configuration with its prevResult has a few kilobytes; a GC
// request names every container of a node.
const MaxSize = 1 << 20

// ErrTooLarge is Write's error for a message that exceeds MaxSize.
var ErrTooLarge = errors.New("the message is too large")

// CNI commands (CNI specification 1.1.0, section 2).
const (
	Add    = "ADD"
	Del    = "DEL"
	Check  = "CHECK"
	GC     = "GC"
	Status = "STATUS"
)

// Error codes (CNI specification 1.1.0, section 5 "Error"). Those from 100 on are this plugin's own.
const (
	CodeUnsupportedField = 2
	CodeUnknownContainer = 3
	CodeInvalidEnv       = 4
	CodeIO               = 5
	CodeDecoding         = 6
	CodeInvalidConfig    = 7
	CodeTryAgain         = 11
	CodeNotAvailable     = 50  // STATUS: ADD can't be served
	CodeLimited          = 51  // STATUS: ADD can't be served, and existing containers may have no network
	CodeInternal         = 999 // the same as in CNI's library
	CodeInterface        = 100 // the interface in the container could not be made
	CodeCheck            = 101 // CHECK: something has changed since ADD
)

// Request is one call of the plugin.
type Request struct {
	Command     string          `json:"command"`
	ContainerID string          `json:"containerID,omitempty"`
	Netns       string          `json:"netns,omitempty"` // path
	IfName      string          `json:"ifName,omitempty"`
	Args        string          `json:"args,omitempty"` // CNI_ARGS: "KEY=VALUE;KEY=VALUE"
	Config      json.RawMessage `json:"config"`         // the plugin's standard input
}

// Response is the answer: an error, or the result to print.
type Response struct {
	Result json.RawMessage `json:"result,omitempty"` // of ADD, in the configuration's CNI version
	Error  *Error          `json:"error,omitempty"`
}

// Error is an error in CNI's form.
type Error struct {
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`               // short
	Details string `json:"details,omitempty"` // the cause, and what to check
}

// Error implements error.
func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Details
}

// Write sends one message.
func Write(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the message: %w", err)
	}
	if len(body) > MaxSize {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrTooLarge, len(body), MaxSize)
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	if _, err := w.Write(append(msg, body...)); err != nil {
		return fmt.Errorf("sending the message: %w", err)
	}
	return nil
}

// Read receives one message of at most MaxSize bytes.
func Read(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("receiving the message's length: %w", err)
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > MaxSize {
		return fmt.Errorf("receiving the message: it has %d bytes, at most %d are allowed", size, MaxSize)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return fmt.Errorf("receiving the message: %w", err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("decoding the message: %w", err)
	}
	return nil
}

// IsAbsent tells whether the error of a connection to a Unix socket means that nobody listens on it, or that it does
// not exist (unix(7)).
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}
