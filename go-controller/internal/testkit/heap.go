package testkit

import "runtime"

// Heap is the bytes of live objects, after a garbage collection.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // the first may have run finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
