package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The server of a connection does not notice that the other end was frozen and thawed.
func TestFreeze(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "server %s\n", r.RemoteAddr)
	}))
	defer server.Close()
	var connection, answer strings.Builder
	if err := freeze(server.Listener.Addr().String(), &connection); err != nil {
		t.Fatal(err)
	}
	if err := thaw(connection.String(), &answer); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(answer.String(), ":")
	if port = strings.TrimSpace(port); port == "" || !strings.Contains(connection.String(), ":"+port+`","Remote"`) {
		t.Errorf("%s was thawed, and the answer is %q", connection.String(), answer.String())
	}
}
