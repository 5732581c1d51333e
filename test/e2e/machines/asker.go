package machines

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/member"
)

// Asker is a place from which Echo asks.
type Asker struct {
	Name    string
	command func(ctx context.Context, argv ...string) (*exec.Cmd, error)
}

// InPod asks out of a pod's network.
func InPod(c *sandbox.Cluster, namespace, pod string) Asker {
	return Asker{namespace + "/" + pod, func(ctx context.Context, argv ...string) (*exec.Cmd, error) {
		return EchoFrom(ctx, c, namespace, pod, argv...)
	}}
}

// On asks on a machine.
func On(m *member.Member) Asker {
	return Asker{m.Spec.Name, func(ctx context.Context, argv ...string) (*exec.Cmd, error) {
		return m.Command(ctx, append([]string{Echo}, argv...)...), nil
	}}
}

// Run returns what Echo prints.
func (a Asker) Run(ctx context.Context, stdin string, argv ...string) (string, error) {
	cmd, err := a.command(ctx, argv...)
	if err != nil {
		return "", fmt.Errorf("asking from %s: %w", a.Name, err)
	}
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("asking from %s: %w: %s", a.Name, err, errs.String())
	}
	return out.String(), nil
}

// Ask asks all questions, such as "tcp 10.96.0.1:80", at the same time. It waits so long for the answers, and returns
// one for each question.
func (a Asker) Ask(ctx context.Context, questions []string, wait time.Duration) ([]string, error) {
	out, err := a.Run(ctx, strings.Join(questions, "\n")+"\n", "questions", wait.String())
	if err != nil {
		return nil, err
	}
	answers := strings.Split(strings.TrimSpace(out), "\n")
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("asking from %s: %d answers to %d questions", a.Name, len(answers), len(questions))
	}
	return answers, nil
}
