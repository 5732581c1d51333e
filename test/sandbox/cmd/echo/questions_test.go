package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCrowd has a thousand connections ask two servers. One of them answers once all its connections are open.
func TestCrowd(t *testing.T) {
	const each = 500
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go answerWhenAllAreOpen(web, each)
	datagrams, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	go func() { _ = servePackets(datagrams, "packets") }() // until it is closed

	var questions, answers bytes.Buffer
	for range each {
		fmt.Fprintf(&questions, "tcp %s\nudp %s\n", web.Addr(), datagrams.LocalAddr())
	}
	fmt.Fprintln(&questions, "tcp 127.0.0.1:1") // nobody listens: the others do not wait for it
	if err := askCrowd(&questions, &answers, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(answers.String()), "\n")
	if len(lines) != 2*each+1 {
		t.Fatalf("%d answers, want %d", len(lines), 2*each+1)
	}
	for i, want := range []string{"web", "packets "} {
		for j := i; j < 2*each; j += 2 {
			if !strings.HasPrefix(lines[j], want) {
				t.Fatalf("answer %d is %q, want one of %q", j, lines[j], want)
			}
		}
	}
	if last := lines[2*each]; !strings.HasPrefix(last, "error: ") {
		t.Errorf("where nobody listens, the answer is %q, want an error", last)
	}
}

// answerWhenAllAreOpen accepts that many connections before it answers on any.
func answerWhenAllAreOpen(web net.Listener, number int) {
	var all []net.Conn
	for range number {
		conn, err := web.Accept()
		if err != nil {
			return // the clients get no answer
		}
		all = append(all, conn)
	}
	for _, conn := range all {
		go func() {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				fmt.Fprint(conn, "HTTP/1.0 200 OK\r\n\r\nweb\n")
			}
			conn.Close()
		}()
	}
}

// TestQuestions has more questions than are asked at a time, and a line that is none.
func TestQuestions(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "web") }))
	defer web.Close()
	var answers bytes.Buffer
	questions := strings.Repeat("tcp "+web.Listener.Addr().String()+"\n", 2*atOnce)
	if err := askAll(strings.NewReader(questions), &answers, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if got, want := answers.String(), strings.Repeat("web\n", 2*atOnce); got != want {
		t.Errorf("answers:\n%s\nwant:\n%s", got, want)
	}
	if err := askAll(strings.NewReader("icmp 127.0.0.1:1\n"), &answers, time.Second); err == nil {
		t.Error("a question over ICMP is no error")
	}
	if err := askCrowd(strings.NewReader("sctp 127.0.0.1:1\n"), &answers, time.Second); err == nil {
		t.Error("a crowd over SCTP is no error")
	}
}
