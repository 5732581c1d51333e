package ovsdbwire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Log counts the transactions in the database file of a standalone server, which appends a record for each transaction
// with changes (ovsdb(5), "Standalone Format"; ovsdb(7), "Standalone Database Model"). The server may continue to
// write. If the server compacts the file, the count is wrong; it does so ten minutes after its start at the earliest.
type Log struct {
	path    string
	offset  int64
	records int
}

// OpenLog prepares to count the records of a database file.
func OpenLog(path string) *Log { return &Log{path: path} }

// Records returns the number of records in the file. The first is the schema.
func (l *Log) Records() (int, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return 0, fmt.Errorf("counting transactions: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("counting transactions: %w", err)
	}
	if info.Size() < l.offset {
		return 0, fmt.Errorf("counting transactions: %s was compacted", l.path)
	}
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return 0, fmt.Errorf("counting transactions: %w", err)
	}
	r := bufio.NewReader(f)
	for {
		header, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return l.records, nil // the end, or an incomplete header
		}
		if err != nil {
			return 0, fmt.Errorf("counting transactions: %w", err)
		}
		var length int
		if _, err := fmt.Sscanf(strings.TrimSpace(header), "OVSDB JSON %d", &length); err != nil {
			return 0, fmt.Errorf("counting transactions: %q is not a record of a standalone database: %w", header, err)
		}
		if n, err := r.Discard(length); n < length {
			if errors.Is(err, io.EOF) {
				return l.records, nil
			}
			return 0, fmt.Errorf("counting transactions: %w", err)
		}
		l.offset += int64(len(header) + length)
		l.records++
	}
}
