package reflector

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// sparseHandler logs the 1st, 2nd, 4th, 8th failure in a row and so on. While an API server is away, every watch fails
// every few seconds.
type sparseHandler struct {
	slog.Handler
	failures *atomic.Uint64 // since the watch last worked
}

// Handle implements slog.Handler.
func (h sparseHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		if n := h.failures.Add(1); n&(n-1) != 0 {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h sparseHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparseHandler{h.Handler.WithAttrs(attrs), h.failures}
}

// WithGroup implements slog.Handler.
func (h sparseHandler) WithGroup(name string) slog.Handler {
	return sparseHandler{h.Handler.WithGroup(name), h.failures}
}
