package remote

import "sync"

// nodesAtOnce is how many nodes are asked at the same time.
const nodesAtOnce = 16

// Each calls ask with 0 to n-1, for some nodes at the same time, and returns when all calls have ended.
func Each(n int, ask func(i int)) {
	room := make(chan struct{}, nodesAtOnce)
	var asking sync.WaitGroup
	for i := range n {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			ask(i)
		})
	}
	asking.Wait()
}
