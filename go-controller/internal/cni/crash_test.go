package cni_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	"github.com/northbound-net/northbound/go-controller/internal/cni/server"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

// crashAfter is an environment variable with the step of ADD after which an agent of TestAgentCrashes kills itself. If
// it is set, the test binary runs as such an agent.
const crashAfter = "NORTHBOUND_TEST_CRASH_AFTER"

func TestMain(m *testing.M) {
	if step := os.Getenv(crashAfter); step != "" {
		fmt.Fprintln(os.Stderr, crashingAgent(step, os.Args[1]))
		os.Exit(1)
	}
	os.Exit(testkit.RunWith(m, "github.com/northbound-net/northbound/go-controller/cmd/ovn_cni",
		"github.com/containernetworking/cni/cnitool", "github.com/containernetworking/plugins/plugins/meta/bandwidth"))
}

// crashingAgent serves CNI requests until an ADD reaches the step.
func crashingAgent(step, ovsAddress string) error {
	ctx := context.Background()
	s, kube, err := newServer(ctx, fake.NewClientset(web().object()), ovsAddress)
	if err != nil {
		return err
	}
	s.Reached = func(reached string) {
		if reached == step {
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
func (b *bed) crash(t *testing.T, a call, step string) {
	t.Helper()
	agent := exec.Command("/proc/self/exe", b.vs.Address)
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
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startOVN(t, true)
	p := web()
	logicalPort(t, p)
	if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), p.object(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	netns(t, p.name)
	for i, step := range server.Steps() {
		for _, verb := range []string{protocol.Add, protocol.Del, protocol.GC} {
			a := add(p, fmt.Sprintf("%d%s-crashed-container", i, strings.ToLower(verb)), "/run/netns/web").in("1.1.0")
			b.crash(t, a, step)
			if got := left(t); got == "" {
				t.Errorf("%s: nothing was there to be cleaned up", step)
			}
			b.startServer(t, func(s *server.Server) { s.Timeout = 20 * time.Second })
			switch verb {
			case protocol.Add:
				result := a.succeed(t)
				a.as(protocol.Check).after(result).succeed(t)
				if got := strings.Count(left(t), a.id[:15]); got != 4 {
					t.Errorf("%s: after the second ADD there are %d things of the container, want pair, interface, port on br-int "+
						"and port:\n%s", step, got, left(t))
				}
				a.as(protocol.Del).succeed(t)
			case protocol.Del:
				a.as(protocol.Del).succeed(t)
			case protocol.GC:
				gc := a.as(protocol.GC)
				gc.extra = map[string]any{"cni.dev/valid-attachments": []any{}}
				gc.succeed(t)
			}
			if got := left(t); got != "" {
				t.Errorf("%s, then %s: left on the node:\n%s", step, verb, got)
			}
			if got := testkit.Run(t, "ip", "-n", "web", "-br", "link"); strings.Contains(got, "eth0") {
				t.Errorf("%s, then %s: left in the pod: %s", step, verb, got)
			}
			b.stop()
		}
	}
}

// Whatever step of an ADD the plugin is killed after, the agent undoes it.
func TestPluginIsKilled(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	b := newBed(t, 20*time.Second)
	b.stop()
	b.startOVN(t, true)
	p := web()
	logicalPort(t, p)
	b.create(t, p, true)
	a := add(p, idA, netns(t, p.name))
	for _, step := range server.Steps() {
		if step == server.StepAnswered {
			continue // the plugin has its answer already
		}
		var cmd *exec.Cmd
		killed := make(chan error, 1)
		b.startServer(t, func(s *server.Server) {
			s.Reached = func(reached string) {
				if reached == step {
					_ = cmd.Process.Kill()
					killed <- cmd.Wait()
				}
			}
		})
		cmd = a.cmd(t.Context(), t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := <-killed; err == nil {
			t.Errorf("%s: a killed plugin succeeded", step)
		}
		testkit.Eventually(t, step+": nothing is left", func() string { return left(t) })
		b.stop()
	}
	b.startServer(t, func(*server.Server) {})
	result := a.succeed(t)
	a.as(protocol.Check).after(result).succeed(t)
	a.as(protocol.Del).succeed(t)
}
