package services

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
)

// patience is how long answers may be lost or rows may be missing. All clients share a few processors.
const patience = 5 * time.Minute

// atOnce is the number of clients that ask at the same time.
const atOnce = 3

// longestWait is the longest wait for answers. A round waits longer than the one before it, so that a busy machine
// gives the last answers, too.
const longestWait = 5 * time.Second

// complaints is the number of wrong cells of a client that a failing test reports.
const complaints = 25

func TestEveryCombination(t *testing.T) {
	all, protocols := services(), machines.Protocols(t)
	b := up(t, all)
	cells := b.cells(all, protocols)
	var asking sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, c := range b.clients() {
		mine := slices.DeleteFunc(slices.Clone(cells), func(x *cell) bool { return x.client.Name != c.Name })
		asking.Go(func() {
			room <- struct{}{}
			b.askAll(t, c, mine)
			<-room
		})
	}
	asking.Wait()
	printTables(t, cells)
	b.fragments(t, all)
}

// cells returns all questions.
func (b bed) cells(all []*service, protocols []string) (cells []*cell) {
	for _, c := range b.clients() {
		for _, w := range b.ways() {
			if !asks(c, w) {
				continue
			}
			for _, s := range all {
				for _, protocol := range protocols {
					for _, to := range w.of(s) {
						cells = append(cells, &cell{
							client: c, way: w, service: s, protocol: protocol, to: to, who: map[string]bool{}, seen: map[string]bool{},
						})
					}
				}
			}
		}
	}
	return cells
}

// askAll asks every question of a client until all answers are right, and then once more: they must stay right.
func (b bed) askAll(t *testing.T, c client, cells []*cell) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	open, err := b.untilRight(ctx, t, c, cells)
	if err == nil && len(open) == 0 {
		for _, x := range cells {
			x.settle()
		}
		open, err = b.untilRight(ctx, t, c, cells)
	}
	if err != nil {
		t.Error(err)
	}
	for _, x := range cells {
		if x.broken != "" {
			t.Errorf("%s: it was right before, and then: %s", x, x.broken)
		}
	}
	for i, x := range open {
		if i == complaints {
			t.Errorf("and %d more", len(open)-i)
			break
		}
		t.Errorf("%s: %s", x, x.wrong)
	}
}

// untilRight repeats the questions with wrong answers until ctx ends, and returns those that never were right.
func (b bed) untilRight(ctx context.Context, t *testing.T, c client, open []*cell) ([]*cell, error) {
	before := 0
	for wait := time.Second; len(open) > 0; wait = min(wait+time.Second, longestWait) {
		if err := b.round(ctx, c, open, wait); err != nil {
			if ctx.Err() != nil {
				err = nil // the answers so far show what is wrong
			}
			return open, err
		}
		open = slices.DeleteFunc(slices.Clone(open), func(x *cell) bool { return x.wrong == "" })
		if len(open) > 0 && len(open) != before {
			t.Logf("%s: %d wrong answers, such as: %s: %s", c.Name, len(open), open[0], open[0].wrong)
		}
		before = len(open)
	}
	return nil, nil
}

// round asks all questions at the same time, and waits that long for the answers.
func (b bed) round(ctx context.Context, c client, cells []*cell, wait time.Duration) error {
	var questions []string
	for _, x := range cells {
		questions = append(questions, slices.Repeat([]string{x.question()}, x.times())...)
	}
	answers, err := c.Ask(ctx, questions, wait)
	if err != nil {
		return err
	}
	for _, x := range cells {
		x.take(answers[:x.times()], b.whose)
		answers = answers[x.times():]
	}
	return nil
}
