package diagnostics

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// IdentityPath is where a server says who it is, with GET. The answer is an Identity.
const IdentityPath = "/v1/server"

// Identity is of one start of a server.
type Identity struct {
	Nonce string `json:"nonce"` // no other start of a server has the same
}

// Path is the path of a tool on its server. A caller sends a Request with POST; the answer is lines of Frames.
func Path(tool string) string { return "/v1/tools/" + tool }

// Audience is the only audience of a token for one start of a server. A server that is in an attacker's hands cannot
// use
// the tokens that it is sent at another server, or at the API server. Whoever takes a server's port while the server is
// away cannot use them at the server when it is back. Source: Kubernetes API, TokenRequest.
func Audience(p Place, node, nonce string) string {
	return "northbound.io/diagnostics/" + string(p) + "/" + node + "/" + nonce
}

// Request is what a caller asks for.
type Request struct {
	Arguments []string `json:"arguments"`
}

// Frame is a part of an answer. The last one of a complete answer has Exit.
type Frame struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Exit   *int   `json:"exit,omitempty"` // the program's exit code; -1 if a signal ended it
}

// ErrCut means that an answer ended before the program did.
var ErrCut = errors.New("the answer is not complete: the connection was closed")

// maxFrame is the longest line of a frame. Programs' output is copied in pieces of 32 KiB.
const maxFrame = 1 << 20

// Copy writes the output of an answer to stdout and stderr until the program has ended. It returns the exit code.
func Copy(answer io.Reader, stdout, stderr io.Writer) (exit int, err error) {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, maxFrame)
	lines.Split(whole)
	for lines.Scan() {
		var f Frame
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &f); err != nil {
			return 0, fmt.Errorf("reading the answer: %w", err)
		}
		if err := write(stdout, f.Stdout); err != nil {
			return 0, fmt.Errorf("writing the output: %w", err)
		}
		if err := write(stderr, f.Stderr); err != nil {
			return 0, fmt.Errorf("writing the messages: %w", err)
		}
		if f.Exit != nil {
			return *f.Exit, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, errors.Join(ErrCut, err)
	}
	return 0, ErrCut
}

// write writes what there is: an empty output must not make a file.
func write(w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.Write(b)
	return err
}

// whole is a bufio.SplitFunc of lines that drops a last line without an end: the rest of it did not come.
func whole(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
