package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// mostBytes is how many bytes a client may ask for.
const mostBytes = 1 << 20

// loadTimeout is how long a client waits for all of them.
const loadTimeout = 5 * time.Second

// answer answers with the server's name and the client's address, or with as many bytes as the client asks for.
func answer(w http.ResponseWriter, r *http.Request, name string) {
	size, err := strconv.Atoi(r.URL.Query().Get("size"))
	if err != nil || size < 1 || size > mostBytes {
		fmt.Fprintf(w, "%s %s\n", name, r.RemoteAddr)
		return
	}
	_, _ = io.WriteString(w, strings.Repeat("=", size)) // the client says what is missing
}

// load asks a server for so many bytes over TCP, and prints how many came.
func load(address, size string, out io.Writer) error {
	want, err := strconv.Atoi(size)
	if err != nil || want < 1 || want > mostBytes {
		return fmt.Errorf("size %q: want 1 to %d", size, mostBytes)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	text, err := fetch(ctx, dialer().DialContext, address+"/?size="+size)
	if err != nil {
		return fmt.Errorf("%d of %d bytes came: %w", len(text), want, err)
	}
	if len(text) != want {
		return fmt.Errorf("%d of %d bytes came", len(text), want)
	}
	_, err = fmt.Fprintf(out, "%d bytes\n", len(text))
	return err
}
