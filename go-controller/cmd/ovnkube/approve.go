package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/ovsdb"
)

func approveCommand() *cli.Command {
	return &cli.Command{
		Name:  "approve",
		Usage: "approve that the master removes many rows",
		Description: "A master that would remove more than 100 rows, and more than every fifth, after its start or a new\n" +
			"connection, waits: the API server may be wrong. This command shows what belongs to nothing in the\n" +
			"cluster any more. With --digest it approves exactly that, and the master removes it.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("digest", "", "approve the removal with this `DIGEST`"),
			timeoutFlag(planTimeout, "`DURATION` to wait for the servers"),
		}, kubernetesFlags(), northboundFlags(), clusterFlags(), topologyFlags(), []cli.Flag{configFlag()}, logFlags("info")),
		Action: runApprove,
	}
}

func runApprove(c *cli.Context) error {
	log, m, err := logAndMaster(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	objects, _, err := liveObjects(ctx, m.Kubernetes, m.Cluster.Policies, log)
	if err != nil {
		return err
	}
	_, err = beside(ctx, c, m, objects, log, func(want *offline.Cluster, session *ovsdb.Session) error {
		return approve(ctx, c.App.Writer, want.Removal(session.View(), session.Owners()), c.String("digest"), session)
	})
	return err
}

// approve shows a removal, and approves it when digest is its own.
func approve(ctx context.Context, w io.Writer, r core.Removal, digest string, session *ovsdb.Session) error {
	if len(r.Owners) == 0 {
		fmt.Fprintln(w, "Nothing to approve: every row belongs to something in the cluster.")
		return nil
	}
	kinds := map[names.Kind][]nb.Owner{}
	for _, o := range r.Owners {
		kinds[o.Kind] = append(kinds[o.Kind], o)
	}
	for _, k := range names.Kinds() {
		if n := len(kinds[k]); n > 0 {
			fmt.Fprintf(w, "- %d of kind %s, such as %s\n", n, k, kinds[k][0].Name)
		}
	}
	fmt.Fprintf(w, "Removal: %d of %d rows, digest %s.\n", r.Rows, r.Of, r.Digest())
	switch digest {
	case "":
		fmt.Fprintf(w, "To approve it: ovnkube approve --digest %s\n", r.Digest())
		return nil
	case r.Digest():
	default:
		return fmt.Errorf("--digest %s: the removal has changed: want %s", digest, r.Digest())
	}
	if err := session.Approve(ctx, digest); err != nil {
		return err
	}
	fmt.Fprintln(w, "Approved.")
	return nil
}
