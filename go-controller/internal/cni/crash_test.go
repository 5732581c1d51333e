package cni_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cni/podif"
	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// crashAfter is an environment variable with the step of ADD after which an agent of TestAgentCrashes kills itself:
// "STEP", or "STEP#N" for the N-th time. If it is set, the test binary runs as such an agent, for a pod whose
// annotation is its second argument.
const crashAfter = "NORTHBOUND_TEST_CRASH_AFTER"

func TestMain(m *testing.M) {
	if step := os.Getenv(crashAfter); step != "" {
		fmt.Fprintln(os.Stderr, crashingAgent(step, os.Args[1], os.Args[2]))
		os.Exit(1)
	}
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovn_cni",
		"github.com/containernetworking/cni/cnitool", "github.com/containernetworking/plugins/plugins/meta/bandwidth"))
}

// crashingAgent serves CNI requests until an ADD reaches the step.
func crashingAgent(step, ovsAddress, annotated string) error {
	ctx := context.Background()
	obj := web().object()
	obj.Annotations[annotation.PodNetworks] = annotated
	s, kube, err := newServer(ctx, fake.NewClientset(obj), ovsAddress)
	if err != nil {
		return err
	}
	step, times, _ := strings.Cut(step, "#")
	left, _ := strconv.Atoi(times) // 0 without a number: the first time
	s.Reached = func(reached string) {
		if reached == step {
			left--
		}
		if reached == step && left <= 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	go kube.Run(ctx)
	l, err := server.Listen(socket)
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// crash runs the ADD with an agent that is killed after the step.
func (b *bed) crash(t *testing.T, p pod, a call, step string) {
	t.Helper()
	agent := exec.Command("/proc/self/exe", b.vs.Address, p.annotation())
	agent.Env = append(os.Environ(), crashAfter+"="+step)
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the agent serves", func() string {
		if _, err := a.as(protocol.Status).in("1.1.0").run(t); err != nil {
			return err.Error()
		}
		return ""
	})
	// After the last step the runtime has its answer.
	if _, err := a.run(t); step != server.StepAnswered && (err == nil || err.Code != protocol.CodeTryAgain ||
		!strings.Contains(err.Msg, "went away")) {
		t.Fatalf("ADD of an agent that is killed after %q: %v", step, err)
	}
	var exit *exec.ExitError
	if err := agent.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("the agent ended with %v, want to be killed", err)
	}
}

// Whatever step of an ADD the agent is killed after, the next agent's ADD succeeds, and its DEL and GC leave nothing
// behind.
func TestAgentCrashes(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	killAgentAfter(t, web(), server.Steps()...)
}

// The same with further interfaces, after the steps that concern the first of them.
func TestAgentCrashesWithFurtherInterfaces(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	killAgentAfter(t, tenant(), podif.StepPair+"#2", podif.StepMarked+"#2", podif.StepContainer+"#2", podif.StepNode+"#2",
		server.StepPort+"#2", server.StepFlows+"#2", server.StepAnswered)
}

// killAgentAfter kills the agent after each of the steps of the pod's ADD. Another agent then serves ADD, DEL or GC.
func killAgentAfter(t *testing.T, p pod, steps ...string) {
	t.Helper()
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startOVN(t, true)
	logicalPort(t, p)
	if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), p.object(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	netns(t, p.name)
	for i, step := range steps {
		for _, verb := range []string{protocol.Add, protocol.Del, protocol.GC} {
			a := add(p, fmt.Sprintf("%d%s-crashed-container", i, strings.ToLower(verb)), "/run/netns/web").in("1.1.0")
			b.crash(t, p, a, step)
			if got := left(t); got == "" {
				t.Errorf("%s: nothing was there to be cleaned up", step)
			}
			b.startServer(t, func(s *server.Server) { s.Timeout = 20 * time.Second })
			b.afterCrash(t, p, a, verb)
			if got := left(t); got != "" {
				t.Errorf("%s, then %s: left on the node:\n%s", step, verb, got)
			}
			if got := testkit.Run(t, "ip", "-n", "web", "-br", "link", "show", "type", "veth"); got != "" {
				t.Errorf("%s, then %s: left in the pod: %s", step, verb, got)
			}
			b.stop()
		}
	}
}

// afterCrash has an agent serve ADD, DEL or GC after another was killed in the middle of the ADD.
func (b *bed) afterCrash(t *testing.T, p pod, a call, verb string) {
	t.Helper()
	switch verb {
	case protocol.Add:
		result := a.succeed(t)
		a.as(protocol.Check).after(result).succeed(t)
		n := 1 + len(p.further)
		if got := strings.Count(left(t), a.id[:8]); got != 4*n {
			t.Errorf("after the second ADD there are %d things of the container, want %d pairs, interfaces, ports on br-int "+
				"and ports:\n%s", got, n, left(t))
		}
		a.as(protocol.Del).succeed(t)
	case protocol.Del:
		a.as(protocol.Del).succeed(t)
	case protocol.GC:
		gc := a.as(protocol.GC)
		gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
		gc.succeed(t)
	}
}

// An agent that is killed in the middle may have made other interfaces than the next ADD is to make.
func TestAgentCrashesAndNetworksChange(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startOVN(t, true)
	logicalPort(t, tenant())
	before, after := tenant(), tenant()
	delete(after.further, "shop.blue/net1")
	b.create(t, after, true)
	netns(t, "web")
	for i, step := range []string{podif.StepPair + "#2", podif.StepMarked + "#3", server.StepPort + "#3"} {
		a := add(after, fmt.Sprintf("%d-crashed-container", i), "/run/netns/web")
		b.crash(t, before, a, step)
		b.startServer(t, func(s *server.Server) { s.Timeout = 20 * time.Second })
		result := a.succeed(t)
		a.as(protocol.Check).after(result).succeed(t)
		if got := strings.Count(left(t), a.id[:8]); got != 4*2 {
			t.Errorf("%s: the container has %d things, want those of two interfaces:\n%s", step, got, left(t))
		}
		if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); strings.Contains(got, "net1@") {
			t.Errorf("%s: an interface of the earlier ADD is left in the pod: %s", step, got)
		}
		a.as(protocol.Del).succeed(t)
		b.stop()
	}
}

// Whatever step of an ADD the plugin is killed after, the agent undoes it.
func TestPluginIsKilled(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	killPluginAtEachStep(t, web(), len(server.Steps())-1)
}

// killPluginAtEachStep kills the plugin after each of the steps of the pod's ADD but the last, when the plugin has its
// answer.
func killPluginAtEachStep(t *testing.T, p pod, steps int) {
	t.Helper()
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startOVN(t, true)
	logicalPort(t, p)
	b.create(t, p, true)
	a := add(p, idA, netns(t, p.name))
	for n := range steps {
		var cmd *exec.Cmd
		started, killed := make(chan struct{}), make(chan error, 1)
		var reached []string
		b.startServer(t, func(s *server.Server) {
			s.Reached = func(step string) {
				if reached = append(reached, step); len(reached) == n+1 {
					<-started
					_ = cmd.Process.Kill()
					killed <- cmd.Wait()
				}
			}
		})
		cmd = a.cmd(t.Context(), t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		close(started)
		err := <-killed
		step := fmt.Sprintf("step %d", n+1)
		if err == nil {
			t.Errorf("%s: a killed plugin succeeded", step)
		}
		testkit.Eventually(t, step+": nothing is left", func() string { return left(t) })
		if got := strings.Fields(testkit.Run(t, "ip", "-n", p.name, "-br", "link", "show", "type", "veth")); len(got) > 0 {
			t.Errorf("%s: left in the pod: %s", step, got)
		}
		b.stop()
		t.Logf("killed after %q", reached[n])
	}
	var reached []string
	b.startServer(t, func(s *server.Server) { s.Reached = func(step string) { reached = append(reached, step) } })
	result := a.succeed(t)
	a.as(protocol.Check).after(result).succeed(t)
	a.as(protocol.Del).succeed(t)
	b.stop()
	if len(reached) != steps+1 {
		t.Errorf("an ADD has %d steps, want the %d that were tried and the answer: %q", len(reached), steps, reached)
	}
}
