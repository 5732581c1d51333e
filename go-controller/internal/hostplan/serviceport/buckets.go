package serviceport

import (
	"hash/fnv"
	"net/netip"
)

// assignBuckets gives each bucket an endpoint, by consistent hashing (Eisenbud and
// others, "Maglev", 2016, section 3.4): each endpoint has an order of preference of
// its own, and in turn they take the next bucket that is free. The numbers of
// buckets differ by one at most. When an endpoint comes or goes, most buckets keep
// theirs. An endpoint beyond the number of buckets gets none; one that is listed
// twice gets twice as many.
func assignBuckets(endpoints []netip.AddrPort, buckets int) []netip.AddrPort {
	out := make([]netip.AddrPort, buckets)
	steps := coprimes(buckets)
	next, step := make([]int, len(endpoints)), make([]int, len(endpoints))
	for i, e := range endpoints {
		h := fnv.New64a()
		_, _ = h.Write(e.Addr().AsSlice()) // a hash takes everything
		sum := h.Sum64()
		next[i], step[i] = int(sum%uint64(buckets)), steps[(sum>>32)%uint64(len(steps))]
	}
	for left := len(out); left > 0; {
		for i, e := range endpoints {
			for out[next[i]].IsValid() && left > 0 {
				next[i] = (next[i] + step[i]) % len(out)
			}
			if left == 0 {
				break
			}
			out[next[i]] = e
			left--
		}
	}
	return out
}

// coprimes are the numbers that have no divisor in common with the number of buckets:
// steps of that size visit every bucket.
func coprimes(buckets int) (out []int) {
	for n := 1; n < buckets; n++ {
		a, b := buckets, n
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			out = append(out, n)
		}
	}
	return out
}
