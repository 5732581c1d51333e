package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/northbound-net/northbound/test/sandbox/node"
)

// drops counts packets that went through more tables than the userspace
// datapath allows (coverage counters, ovs-appctl(8)).
const drops = "datapath_drop_recirc_error"

// well is an error when specs may have passed, or failed, although a node's
// datapath lost packets or crashed.
func (b *bed) well(ctx context.Context) error {
	var errs []error
	for _, n := range b.Nodes {
		have, err := n.Run(ctx, "ovs-appctl", "coverage/read-counter", drops)
		if err == nil && strings.TrimSpace(have) != "0" {
			err = fmt.Errorf("node %s: counter %s is %s, want 0", n.Spec.Name, drops, strings.TrimSpace(have))
		}
		errs = append(errs, err)
		log := filepath.Join(n.Spec.LogDir(), node.VSwitchd+".log")
		text, err := os.ReadFile(log)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading what ovs-vswitchd said: %w", err))
		}
		for line := range strings.Lines(string(text)) {
			// Of its own monitor, and of a failed assertion (ovs-vswitchd(8)).
			if strings.Contains(line, "|EMER|") || strings.Contains(line, "died") {
				errs = append(errs, fmt.Errorf("node %s: ovs-vswitchd crashed: %s", n.Spec.Name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(errs...)
}
