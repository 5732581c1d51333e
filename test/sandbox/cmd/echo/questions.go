package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce is the number of questions that wait for an answer at a time. Many more datagrams would fill the receive
// buffer of a server's UDP socket.
const atOnce = 64

// crowdAtOnce is atOnce for a crowd. Several crowds ask at the same time, and a switch in userspace drops what does not
// fit into its receive buffer while the machine is busy.
const crowdAtOnce = 16

// line is a line of the input, such as "tcp HOST:PORT".
type line struct{ network, address string }

// askAll reads questions, such as "tcp HOST:PORT", one on each line, and prints the answers in the same order.
func askAll(questions io.Reader, answers io.Writer, wait time.Duration) error {
	lines, err := readLines(questions, networks())
	if err != nil {
		return err
	}
	room := make(chan struct{}, atOnce)
	return answerAll(lines, answers, func(l line) (string, error) {
		room <- struct{}{}
		defer func() { <-room }()
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		return question(ctx, dialer().DialContext, l.network, l.address)
	})
}

// askCrowd is askAll with all connections open at the same time: it asks the first question once all are open or have
// failed. A UDP socket counts as a connection. The time to wait includes the opening.
func askCrowd(questions io.Reader, answers io.Writer, wait time.Duration) error {
	lines, err := readLines(questions, []string{"tcp", "udp"})
	if err != nil {
		return err
	}
	var opening sync.WaitGroup
	opening.Add(len(lines))
	room := make(chan struct{}, crowdAtOnce)
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return answerAll(lines, answers, func(l line) (string, error) {
		room <- struct{}{}
		conn, err := dialer().DialContext(ctx, l.network, l.address)
		<-room
		opening.Done()
		opening.Wait()
		if err != nil {
			return "", err
		}
		defer conn.Close()
		room <- struct{}{}
		defer func() { <-room }()
		opened := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
		return question(ctx, opened, l.network, l.address)
	})
}

// readLines reads lines "NETWORK HOST:PORT".
func readLines(from io.Reader, networks []string) ([]line, error) {
	var lines []line
	read := bufio.NewScanner(from)
	for read.Scan() {
		network, address, ok := strings.Cut(read.Text(), " ")
		if !ok || !slices.Contains(networks, network) {
			return nil, fmt.Errorf("question %q: want one of %s, and HOST:PORT", read.Text(), strings.Join(networks, ", "))
		}
		lines = append(lines, line{network, address})
	}
	if err := read.Err(); err != nil {
		return nil, fmt.Errorf("reading the questions: %w", err)
	}
	return lines, nil
}

// answerAll calls ask for all lines at the same time, and prints the answers, or the errors, in the lines' order.
func answerAll(lines []line, to io.Writer, ask func(line) (string, error)) error {
	answers := make([]string, len(lines))
	var asking sync.WaitGroup
	for i, l := range lines {
		asking.Go(func() {
			answer, err := ask(l)
			if err != nil {
				answer = "error: " + err.Error()
			}
			answers[i] = answer
		})
	}
	asking.Wait()
	for _, a := range answers {
		if _, err := fmt.Fprintln(to, a); err != nil {
			return fmt.Errorf("printing the answers: %w", err)
		}
	}
	return nil
}
