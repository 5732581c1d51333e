package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// atOnce is the number of concurrent questions.
const atOnce = 64

// askAll reads questions, such as "tcp HOST:PORT", one on each line, and prints the answers in the same order.
func askAll(questions io.Reader, wait time.Duration) error {
	var answers []chan string
	room := make(chan struct{}, atOnce)
	lines := bufio.NewScanner(questions)
	for lines.Scan() {
		network, address, ok := strings.Cut(lines.Text(), " ")
		if !ok || !slices.Contains(networks(), network) {
			return fmt.Errorf("question %q: want tcp, udp or sctp, and HOST:PORT", lines.Text())
		}
		to := make(chan string, 1)
		answers = append(answers, to)
		room <- struct{}{}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			line, err := question(ctx, network, address)
			if err != nil {
				line = "error: " + err.Error()
			}
			to <- line
			<-room
		}()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the questions: %w", err)
	}
	for _, a := range answers {
		fmt.Println(<-a)
	}
	return nil
}
