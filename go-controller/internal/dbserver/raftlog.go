package dbserver

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // the format asks for it; it is a checksum there
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
)

// magic begins each record of a clustered database's file: then come the length of the record, in bytes, and its SHA-1
// (ovsdb(5), "Clustered Format").
const magic = "OVSDB CLUSTER"

// logRecord is one of a file. Its members are as they stand there.
type logRecord map[string]json.RawMessage

// readRecord returns io.EOF after the last one. size is that of the file.
func readRecord(r *bufio.Reader, size int64) (logRecord, error) {
	head, err := r.ReadString('\n')
	if errors.Is(err, io.EOF) && head == "" {
		return nil, io.EOF
	}
	length, ok := strings.CutPrefix(head, magic+" ")
	length, _, _ = strings.Cut(length, " ")
	n, numErr := strconv.ParseInt(length, 10, 64)
	if err != nil || !ok || numErr != nil || n < 0 || n > size {
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

// eachRecord calls do for each record of a file, until it returns false.
func eachRecord(path string, do func(logRecord) (bool, error)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading a clustered database: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading a clustered database: %w", err)
	}
	for in, more := bufio.NewReader(f), true; more; {
		r, err := readRecord(in, info.Size())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			more, err = do(r)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return nil
}

// servers is the last list of servers in a record, by their UUIDs; nil when it has none.
func (r logRecord) servers() (last map[string]json.RawMessage, err error) {
	for _, list := range []string{"prev_servers", "servers"} {
		if r[list] == nil {
			continue
		}
		last = nil
		if err := json.Unmarshal(r[list], &last); err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
	}
	return last, nil
}

// hasOthers tells whether the last list of servers in a file has others than this one. The change that removed them may
// be in no file, if the last of them went before it took effect.
func hasOthers(path, server string) (others bool, err error) {
	err = eachRecord(path, func(r logRecord) (bool, error) {
		servers, err := r.servers()
		if servers != nil {
			delete(servers, server)
			others = len(servers) > 0
		}
		return true, err
	})
	return others, err
}

// isMember tells whether a server is a member of its cluster, as far as its file knows: the last list of servers has
// it. A server that was ended while it joined is none, and ovsdb-server does not start with its file.
func isMember(path, server string) (member bool, err error) {
	first := true
	err = eachRecord(path, func(r logRecord) (bool, error) {
		servers, err := r.servers()
		if servers != nil {
			_, member = servers[server]
		}
		more := !first || !member // a list that comes later is that of a change, which the cluster may have undone
		first = false
		return more, err
	})
	return member, err
}

// startAt has the log of a new cluster begin at an index. Clients refuse a cluster whose index is lower than the one
// that they saw last: to them, its data is old (ovsdb-server(5), column index of Database).
func startAt(path string, index int64) error {
	var out bytes.Buffer
	err := eachRecord(path, func(r logRecord) (bool, error) {
		for _, member := range []string{"prev_index", "index"} {
			var have int64
			if r[member] == nil {
				continue
			}
			if err := json.Unmarshal(r[member], &have); err != nil {
				return false, fmt.Errorf("%s: %w", member, err)
			}
			r[member] = json.RawMessage(strconv.FormatInt(index+have, 10))
		}
		body, err := json.Marshal(r)
		if err != nil {
			return false, err
		}
		body = append(body, '\n')
		sum := sha1.Sum(body) //nolint:gosec // as above
		fmt.Fprintf(&out, "%s %d %s\n", magic, len(body), hex.EncodeToString(sum[:]))
		out.Write(body)
		return true, nil
	})
	if err == nil {
		err = atomicfile.Write(path, out.Bytes(), 0o640)
	}
	if err != nil {
		return fmt.Errorf("setting the index of a new cluster: %w", err)
	}
	return nil
}
