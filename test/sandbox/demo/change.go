package demo

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/northbound-net/northbound/test/sandbox/control"
)

// Metrics of the master.
const (
	repairsMetric = "northbound_nb_repairs_total"
	rowsMetric    = "northbound_nb_rows_written_total"
	patchesMetric = "northbound_k8s_patches_total"
)

// delete shows that a pod's port goes with the pod.
func (d *Demo) delete(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	pod := pods[0].Name
	d.title("Pod %s is deleted, and its port with it", pod)
	if err := d.kubectl(ctx, "delete", "pod", pod); err != nil {
		return err
	}
	find := []string{"--bare", "--columns=name", "find", "Logical_Switch_Port", "name=default_" + pod}
	d.sandbox(append([]string{"nbctl"}, find...)...)
	err = d.until(ctx, "the port is gone", func() (bool, error) {
		out, err := d.Cluster.NBCtl(ctx, find...)
		return strings.TrimSpace(out) == "", err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(d.Out, "(nothing: the port is gone)")
	return d.kubectl(ctx, "rollout", "status", "deployment/"+App, "--timeout="+patience.String())
}

// repair changes a row by hand and shows it put back.
func (d *Demo) repair(ctx context.Context) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}
	port := "default_" + pods[0].Name
	d.title("Somebody changes the port of %s behind the master's back", pods[0].Name)
	get := []string{"lsp-get-addresses", port}
	want, err := d.Cluster.NBCtl(ctx, get...)
	if err != nil {
		return err
	}
	before, err := d.Cluster.Metric(ctx, repairsMetric)
	if err != nil {
		return err
	}
	set := []string{"lsp-set-addresses", port, "0a:00:00:00:00:01 192.0.2.1"}
	d.sandbox("nbctl", set[0], set[1], `"`+set[2]+`"`)
	if _, err := d.Cluster.NBCtl(ctx, set...); err != nil {
		return err
	}
	start, after := time.Now(), before
	err = d.until(ctx, "the row is repaired", func() (bool, error) {
		have, err := d.Cluster.NBCtl(ctx, get...)
		if err != nil || have != want {
			return false, err
		}
		after, err = d.Cluster.Metric(ctx, repairsMetric)
		return after > before, err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	d.sandbox(append([]string{"nbctl"}, get...)...)
	fmt.Fprint(d.Out, want)
	fmt.Fprintf(d.Out, "repaired and seen to be so after %d ms; %s went from %v to %v\n",
		took.Milliseconds(), repairsMetric, before, after)
	return nil
}

// restart shows that a restart on an unchanged cluster writes nothing.
func (d *Demo) restart(ctx context.Context) error {
	d.title("The master is restarted; the cluster hasn't changed")
	d.sandbox("restart", control.Master)
	if err := d.Cluster.Restart(ctx, control.Master, syscall.SIGTERM); err != nil {
		return err
	}
	start := time.Now()
	err := d.until(ctx, "the master is in sync", func() (bool, error) {
		synced, err := d.Cluster.Metric(ctx, "northbound_in_sync")
		if err != nil {
			return false, nil // it isn't listening yet
		}
		passes, err := d.Cluster.Metric(ctx, "northbound_full_passes_total")
		return synced == 1 && passes >= 1, err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	rows, err := d.Cluster.Metric(ctx, rowsMetric)
	if err != nil {
		return err
	}
	patches, err := d.Cluster.Metric(ctx, patchesMetric)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "in sync after %d ms: %v rows written, %v annotations written\n",
		took.Milliseconds(), rows, patches)
	if rows != 0 || patches != 0 {
		return fmt.Errorf("a restart wrote %v rows and %v annotations, want none", rows, patches)
	}
	return nil
}
