package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox/cgroup"
)

// agentReady waits until the agent of n1 is ready.
func agentReady(t *testing.T) {
	t.Helper()
	eventually(t, "the agent is ready", func() string {
		if out, err := sandbox(t.Context(), "metrics", "n1"); err != nil ||
			!strings.Contains(out, "northbound_node_ready 1") {
			return fmt.Sprint("not yet: ", err)
		}
		return ""
	})
}

// TestAgentWithoutFiles checks that an agent that may open no more files says so and goes on. Pods wait meanwhile. The
// same process serves them when it may open files again. Running pods do not notice.
func TestAgentWithoutFiles(t *testing.T) {
	streams := steadyStreams(t)
	pid := agentPID(t, "n1")
	limit := func(files string) {
		t.Helper()
		must(t, "node", "n1", "--", "prlimit", "--pid", pid, "--nofile="+files+":")
	}
	was := strings.TrimSpace(must(t, "node", "n1", "--", "prlimit", "--pid", pid, "--nofile", "--noheadings",
		"--output", "SOFT"))
	limit("3")
	t.Cleanup(func() { // the test's context has ended
		if out, err := sandbox(context.Background(), "node", "n1", "--", "prlimit", "--pid", pid,
			"--nofile="+was+":"); err != nil {
			t.Errorf("raising the limit of files: %v\n%s", err, out)
		}
	})
	machines.MoreReplies(t, streams, 400) // longer than the agent takes to look again
	machines.NoGaps(t, streams)
	apply(t, deployment("late", 3)+service("late", "late")) // one for each node
	for _, want := range []string{"open files are short", "a CNI request must wait", "too many open files"} {
		eventually(t, "a line of the log", func() string {
			if log := must(t, "logs", "n1/ovnkube-node"); !strings.Contains(log, want) {
				return fmt.Sprintf("none with %q", want)
			}
			return ""
		})
	}
	if ready, others := pods(t, "late"); others == 0 {
		t.Errorf("%d pods are ready, although an agent could not open a file", len(ready))
	}
	limit(was)
	settled(t, "late", readyPods(t, "late", 3))
	if now := agentPID(t, "n1"); now != pid {
		t.Errorf("the agent's process is %q, want %s as before", now, pid)
	}
}

// TestAgentMemory checks that 100 hostile Services do not double what the agent takes, and that pods which come beside
// them work.
func TestAgentMemory(t *testing.T) {
	before := agentRSS(t)
	services := hostileServices(t)
	t.Cleanup(func() {
		if out, err := sandbox(context.Background(), "kubectl", "delete", "service", "-l", "app=hostile",
			"--wait=false"); err != nil {
			t.Errorf("deleting hostile Services: %v\n%s", err, out)
		}
	})
	applyStdin(t, services)
	eventually(t, "Events of hostile Services", func() string {
		names := kubectl(t, "get", "events", "--field-selector", "reason=TooManyVirtualAddresses", "-o",
			"jsonpath={range .items[*]}{.involvedObject.name}{\"\\n\"}{end}")
		about := map[string]bool{}
		for _, name := range strings.Fields(names) {
			about[name] = strings.HasPrefix(name, "hostile-")
		}
		if len(about) < hostile {
			return fmt.Sprintf("%d of %d", len(about), hostile)
		}
		return ""
	})
	after := agentRSS(t)
	if after > 2*before {
		t.Errorf("with hostile Services the agent has %d KB, want at most twice the %d KB of before", after, before)
	}
	apply(t, deployment("beside", 3)+service("beside", "beside"))
	settled(t, "beside", readyPods(t, "beside", 3))
	t.Logf("the agent had %d KB before hostile Services came, and %d KB beside them", before, after)
}

// TestAgentKilledForItsMemory has the kernel kill the agent for its memory. The next one serves pods, and running pods
// do not notice.
func TestAgentKilledForItsMemory(t *testing.T) {
	streams := steadyStreams(t)
	group, err := cgroup.NewMemory(fmt.Sprintf("northbound-e2e-memory-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := group.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := group.Limit(4096); err != nil { // what it has already does not count
		t.Fatal(err)
	}
	former := agentPID(t, "n1")
	must(t, "node", "n1", "--", "sh", "-c", "echo "+former+" >"+group.Procs())
	eventually(t, "the agent has been killed", func() string {
		_, _ = sandbox(t.Context(), "metrics", "n1") // so that it wants memory
		return stillRuns(t, former)
	})
	if n, err := group.Killed(); err != nil || n == 0 {
		t.Errorf("the kernel has killed %d processes for their memory, %v", n, err)
	}
	if !onChart() { // there the kubelet starts it
		must(t, "restart", "n1/ovnkube-node")
	}
	agentReady(t)
	machines.MoreReplies(t, streams, 100)
	machines.NoGaps(t, streams)
	apply(t, deployment("later", 3)+service("later", "later"))
	settled(t, "later", readyPods(t, "later", 3))
}

// agentRSS is the memory of the agent of n1, in KB.
func agentRSS(t *testing.T) int {
	t.Helper()
	status := must(t, "node", "n1", "--", "cat", "/proc/"+agentPID(t, "n1")+"/status")
	_, rest, _ := strings.Cut(status, "VmRSS:")
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("the agent's memory: %v\n%s", err, status)
	}
	return n
}

const hostile = 100 // Services, each with 500 addresses and 10 ports: more than is served

// hostileServices is a manifest.
func hostileServices(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	var ports, items []object
	for n := range 10 {
		ports = append(ports, object{"name": fmt.Sprint("p", n), "port": 1000 + n})
	}
	for i := range hostile {
		var addresses []string
		for n := range 500 {
			addresses = append(addresses, fmt.Sprintf("198.%d.%d.%d", 18+n/250, i, 1+n%250))
		}
		items = append(items, object{"apiVersion": "v1", "kind": "Service", "metadata": object{
			"name": fmt.Sprint("hostile-", i), "labels": object{"app": "hostile"}},
			"spec": object{"ports": ports, "externalIPs": addresses}})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
