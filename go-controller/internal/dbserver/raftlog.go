package dbserver

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // the format asks for it; it is a checksum there
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// magic begins each record of a clustered database's file: then come the length of the record, in bytes, and its SHA-1
// (ovsdb(5), "Clustered Format").
const magic = "OVSDB CLUSTER"

// maxRecord bounds a record of a file: that of a large database's snapshot.
const maxRecord = 4 << 30

// logRecord is one of a file. Its members are as they stand there.
type logRecord map[string]json.RawMessage

// readRecord returns io.EOF after the last one.
func readRecord(r *bufio.Reader) (logRecord, error) {
	head, err := r.ReadString('\n')
	if errors.Is(err, io.EOF) && head == "" {
		return nil, io.EOF
	}
	length, ok := strings.CutPrefix(head, magic+" ")
	length, _, _ = strings.Cut(length, " ")
	n, numErr := strconv.ParseInt(length, 10, 64)
	if err != nil || !ok || numErr != nil || n < 0 || n > maxRecord {
		return nil, fmt.Errorf("reading a record of a clustered database: it begins with %.60q", head)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("reading a record of a clustered database: %w", err)
	}
	var out logRecord
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, fmt.Errorf("reading a record of a clustered database: %w", err)
	}
	return out, nil
}

// hasJoined tells whether the server of a clustered database's file has been a member of its cluster. The file of one
// that has not begins with where to join.
func hasJoined(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("looking at the database's file: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	first, err := readRecord(bufio.NewReader(f))
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", path, err)
	}
	return first["remote_addresses"] == nil, nil
}

// startAt has the log of a new cluster begin at an index. Clients refuse a cluster whose index is lower than the one
// that they saw last: to them, its data is old (ovsdb-server(5), column index of Database).
func startAt(path string, index int64) error {
	text, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("setting the index of a new cluster: %w", err)
	}
	defer text.Close() //nolint:errcheck // it was only read
	var out strings.Builder
	for in := bufio.NewReader(text); ; {
		r, err := readRecord(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("setting the index of a new cluster: %w", err)
		}
		for _, member := range []string{"prev_index", "index"} {
			var have int64
			if r[member] == nil {
				continue
			}
			if err := json.Unmarshal(r[member], &have); err != nil {
				return fmt.Errorf("setting the index of a new cluster: reading %s: %w", member, err)
			}
			r[member] = json.RawMessage(strconv.FormatInt(index+have, 10))
		}
		body, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("setting the index of a new cluster: %w", err)
		}
		body = append(body, '\n')
		sum := sha1.Sum(body) //nolint:gosec // as above
		fmt.Fprintf(&out, "%s %d %s\n%s", magic, len(body), hex.EncodeToString(sum[:]), body)
	}
	if err := atomicfile.Write(path, []byte(out.String()), 0o640); err != nil {
		return fmt.Errorf("setting the index of a new cluster: %w", err)
	}
	return nil
}

// firstIndex is where the log of a new cluster begins: at the time in milliseconds. No cluster writes a thousand times
// a second for all of its life, so that this is more than any earlier cluster's index.
func firstIndex() int64 { return time.Now().UnixMilli() }
