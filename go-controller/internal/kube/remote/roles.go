package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
)

// roles says which master and which databases lead. A database that does not answer is a problem; one that the user may
// not ask is an error.
func (s *Session) roles(ctx context.Context, all []Component) error {
	leader, problem, err := s.leader(ctx)
	errs := make([]error, len(all)+1)
	errs[len(all)] = err
	s.masterRoles(all, leader, problem)
	var running sync.WaitGroup
	for i := range all {
		if c := &all[i]; c.Name == "databases" && c.Node != "" {
			running.Go(func() { errs[i] = s.databaseRoles(ctx, c) })
		}
	}
	running.Wait()
	return errors.Join(errs...)
}

// masterRoles names the leader. If there is none, the masters are not ready.
func (s *Session) masterRoles(all []Component, leader, problem string) {
	var masters []*Component
	known := false
	for i := range all {
		if c := &all[i]; c.Name == "master" && c.Node != "" {
			masters = append(masters, c)
			known = known || isHost(c.Node, leader)
		}
	}
	if problem == neverLed && len(masters) == 1 {
		return // it works without an election
	}
	for _, c := range masters {
		switch {
		case isHost(c.Node, leader):
			c.Role = "leader"
		case known:
			c.Role = "standby"
		case problem != "" && c.Ready:
			c.Ready, c.Problem = false, problem
			c.Try = fmt.Sprintf("kubectl --namespace %s logs --selector app=%s", s.Namespace, diagnostics.Master.App())
		}
	}
}

// neverLed is the problem that there is no Lease.
const neverLed = "no master has ever led"

// leader is the host of the master that leads, or "" and what is wrong. This machine's clock may be wrong: a Lease that
// looks old is watched for as long as it holds.
func (s *Session) leader(ctx context.Context) (host, problem string, err error) {
	e := config.DefaultMaster().LeaderElect
	var first *metav1.MicroTime
	for start := time.Now(); ; {
		lease, err := s.Kube.CoordinationV1().Leases(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "", neverLed, nil
		case err != nil:
			return "", "", fmt.Errorf("reading the masters' Lease: %w", err)
		case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
			return "", "no master leads now", nil
		}
		held := e.Lease
		if d := lease.Spec.LeaseDurationSeconds; d != nil {
			held = time.Duration(*d) * time.Second
		}
		if first == nil {
			first = lease.Spec.RenewTime
		}
		if time.Since(lease.Spec.RenewTime.Time) < held || !first.Equal(lease.Spec.RenewTime) {
			host, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
			return host, "", nil
		}
		if time.Since(start) > held {
			return "", "no master leads now", nil
		}
		select {
		case <-ctx.Done():
			return "", "", fmt.Errorf("watching the masters' Lease: %w", ctx.Err())
		case <-time.After(s.lookAgain):
		}
	}
}

// isHost tells whether a Node is the machine with this host name.
func isHost(node, host string) bool {
	return host != "" && (node == host || strings.HasPrefix(node, host+"."))
}

// roleTimeout limits how long a node's databases may take to say what they are.
const roleTimeout = 20 * time.Second

// databaseRoles asks the servers on a node, and its ovn-northd.
func (s *Session) databaseRoles(ctx context.Context, c *Component) error {
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	to, err := s.OnNode(ctx, diagnostics.Database, c.Node)
	var roles []string
	for _, q := range [][]string{
		{"nb", "cluster/status", "OVN_Northbound"}, {"sb", "cluster/status", "OVN_Southbound"}, {"northd", "status"},
	} {
		text := ""
		if err == nil {
			text, err = s.ask(ctx, to, "database", q...)
		}
		role := raftRole(text)
		if q[0] == "northd" {
			_, role, _ = strings.Cut(strings.TrimSpace(text), ": ")
		}
		roles = append(roles, q[0]+" "+role)
	}
	switch {
	case apierrors.IsForbidden(err):
		return err
	case err == nil:
		c.Role = strings.Join(roles, ", ")
		// Without an answer the sizes are unknown: a server of an earlier version has no such tool.
		if text, err := s.ask(ctx, to, "disk", "files"); err == nil {
			c.Bytes = fileBytes(text)
		}
	case c.Ready:
		c.Ready, c.Problem = false, err.Error()
		c.Try = fmt.Sprintf("kubectl --namespace %s logs --selector app=%s --all-containers", s.Namespace,
			diagnostics.Database.App())
	}
	return nil
}

// fileBytes are the sizes of the databases' files, by "nb" and "sb". Each line has one, and the file's name.
func fileBytes(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		size, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, ok := strings.CutSuffix(strings.TrimPrefix(path.Base(file), "ovn"), "_db.db")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil && ok {
			out[name] = n
		}
	}
	return out
}

// ask is the output of a tool.
func (s *Session) ask(ctx context.Context, to Server, tool string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	exit, err := s.Run(ctx, to, *diagnostics.Find(to.Place, tool), args, &stdout, &stderr)
	if err == nil && exit != 0 {
		err = errors.New(strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), err
}

// raftRole is the role, term and number of servers in the answer to cluster/status, and the lag: how many entries of
// its log the server has not committed, or not applied. A healthy one has none but for moments. Source:
// ovsdb-server(1).
func raftRole(text string) string {
	role, term, servers, lag := "", "", 0, 0
	counting := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "Role: "):
			role = strings.TrimPrefix(line, "Role: ")
		case strings.HasPrefix(line, "Term: "):
			term = strings.TrimPrefix(line, "Term: ")
		case strings.HasPrefix(line, "Entries not yet "):
			_, entries, _ := strings.Cut(line, ": ")
			n, _ := strconv.Atoi(entries) // none, if it is no number
			lag += n
		case strings.HasPrefix(line, "Servers:"):
			counting = true
		case counting && strings.HasPrefix(line, " "):
			servers++
		}
	}
	if servers <= 1 {
		return "alone"
	}
	if lag > 0 {
		return fmt.Sprintf("%s of %d (term %s, lag of %d entries)", role, servers, term, lag)
	}
	return fmt.Sprintf("%s of %d (term %s)", role, servers, term)
}
