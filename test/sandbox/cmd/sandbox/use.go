package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/control"
)

func kubectlCommand() *cli.Command {
	return &cli.Command{
		Name: "kubectl", Usage: "kubectl, as the cluster's administrator", ArgsUsage: "ARGS...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			return attached(cluster.Kubectl(c.Context, c.Args().Slice()...))
		},
	}
}

// kubectlInPlaceCommand is kubectl itself, run by kubectlCommand in the
// sandbox's network.
func kubectlInPlaceCommand() *cli.Command {
	return &cli.Command{
		Name: "kubectl-in-place", Hidden: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			os.Args = append([]string{"kubectl"}, c.Args().Slice()...) // kubectl reads them for its plugins
			k := kubectl.NewDefaultKubectlCommand()
			k.SetArgs(c.Args().Slice())
			return k.ExecuteContext(c.Context)
		},
	}
}

func databaseCommand(name, program, database string) *cli.Command {
	begin := (*control.Control).NBCtl
	if name == "sbctl" {
		begin = (*control.Control).SBCtl
	}
	return &cli.Command{
		Name: name, Usage: program + " on the " + database + " database", ArgsUsage: "ARGS...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			argv := append(begin(cluster.Control), c.Args().Slice()...)
			if cluster.RunsChart() {
				return attached(cluster.Kubectl(c.Context, append([]string{"--namespace", sandbox.Namespace, "exec",
					"daemonset/ovn-db", "--container", strings.TrimSuffix(c.Command.Name, "ctl"), "--", program},
					c.Args().Slice()...)...))
			}
			return attached(cluster.Control.Command(c.Context, argv...))
		},
	}
}

func ovnkubeCommand() *cli.Command {
	return &cli.Command{
		Name: "ovnkube", Usage: "ovnkube with the master's addresses; of the chart, in a master's pod", ArgsUsage: "ARGS...",
		SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			return attached(cluster.OVNKube(c.Context, c.Args().Slice()...))
		},
	}
}

func execCommand() *cli.Command {
	return &cli.Command{
		Name: "exec", Usage: "run a program in a pod", ArgsUsage: "[NAMESPACE/]POD -- COMMAND...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			pod, argv, err := target(c, "[NAMESPACE/]POD")
			if err != nil {
				return err
			}
			cluster, err := open(c)
			if err != nil {
				return err
			}
			args := []string{"exec", "--stdin"}
			if namespace, name, ok := strings.Cut(pod, "/"); ok {
				args, pod = append(args, "--namespace", namespace), name
			}
			if isTerminal(os.Stdin) {
				args = append(args, "--tty")
			}
			return attached(cluster.Kubectl(c.Context, append(append(args, pod, "--"), argv...)...))
		},
	}
}

func nodeCommand() *cli.Command {
	return &cli.Command{
		Name: "node", Usage: "run a program on a node, on a control machine, or on the host outside",
		ArgsUsage: "N|MACHINE -- COMMAND...", SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			which, argv, err := target(c, "N|MACHINE")
			if err != nil {
				return err
			}
			cluster, err := open(c)
			if err != nil {
				return err
			}
			for _, m := range cluster.Members() {
				if m.Spec.Name == which {
					return attached(m.Command(c.Context, argv...))
				}
			}
			n, err := cluster.Node(which)
			if err != nil {
				return err
			}
			return attached(n.Command(c.Context, argv...))
		},
	}
}

// target splits "WHERE -- COMMAND..."; the dashes may be left out.
func target(c *cli.Context, where string) (string, []string, error) {
	args := c.Args().Slice()
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return "", nil, fmt.Errorf("want `sandbox %s %s -- COMMAND...`", c.Command.Name, where)
	}
	return args[0], args[1:], nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "print a component's log; without an argument, name the components", ArgsUsage: "[COMPONENT]",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on as it grows"}},
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			logs, err := cluster.Logs()
			if err != nil {
				return err
			}
			if c.Args().Len() == 0 {
				var names []string
				for name := range logs {
					names = append(names, name)
				}
				sort.Strings(names)
				fmt.Fprintln(c.App.Writer, strings.Join(names, "\n"))
				return nil
			}
			if cmd, ok, err := cluster.LogOf(c.Context, c.Args().First(), c.Bool("follow")); ok {
				if err != nil {
					return err
				}
				return attached(cmd)
			}
			file, ok := logs[c.Args().First()]
			if !ok {
				return fmt.Errorf("there is no component %q: `sandbox logs` names them", c.Args().First())
			}
			args := []string{"-n", "+1", file}
			if c.Bool("follow") {
				args = append([]string{"-f"}, args...)
			}
			err = attached(exec.CommandContext(c.Context, "tail", args...))
			if c.Err() != nil {
				return nil // it was followed until interrupted
			}
			return err
		},
	}
}

func restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "stop a component and start it again", ArgsUsage: "COMPONENT",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "kill", Usage: "end it with SIGKILL, not SIGTERM"}},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return errors.New("want `sandbox restart COMPONENT`: `sandbox status` names them, master or n1/kubelet")
			}
			cluster, err := open(c)
			if err != nil {
				return err
			}
			signal := syscall.SIGTERM
			if c.Bool("kill") {
				signal = syscall.SIGKILL
			}
			return cluster.Restart(c.Context, c.Args().First(), signal)
		},
	}
}

func metricsCommand() *cli.Command {
	return &cli.Command{
		Name: "metrics", Usage: "print the metrics of the master, or of a node's agent", ArgsUsage: "[N]",
		Action: func(c *cli.Context) error {
			cluster, err := open(c)
			if err != nil {
				return err
			}
			text, err := cluster.Metrics(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return err
		},
	}
}
