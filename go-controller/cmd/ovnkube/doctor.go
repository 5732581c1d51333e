package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/doctor"
)

// defaultDoctorTimeout is the longest that one question takes.
const defaultDoctorTimeout = 5 * time.Second

// exitProblems is the exit code of a doctor who has found some.
const exitProblems = 2

// doctorCommand is `ovnkube doctor`.
func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "look this node over, and say what is wrong and what to type",
		Description: "Checks the host, Open vSwitch, OVN, the paths to the other nodes, the CNI plugin and, where one is given, the\n" +
			"API server. It changes nothing. Give it the flags or the environment of `ovnkube node`. Exit code 0: no problem;\n" +
			"2: problems; 1: it could not run.",
		Flags:  doctorFlags(),
		Action: runDoctor,
	}
}

func doctorFlags() []cli.Flag {
	own := []cli.Flag{
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Value: "text", Usage: "`FORMAT`: text, json"},
		&cli.DurationFlag{Name: "timeout", Value: defaultDoctorTimeout, Usage: "how long one question may take", EnvVars: env("timeout")},
	}
	return slices.Concat(own, nodeFlags(), northboundFlags())
}

// doctorConfig reads what is to be examined.
func doctorConfig(c *cli.Context) (doctor.Config, error) {
	n, err := nodeSettings(c)
	if err != nil {
		return doctor.Config{}, err
	}
	d := doctor.Config{
		Node: n, Timeout: c.Duration("timeout"),
		Kubernetes: n.Kubernetes.Kubeconfig != "" || n.Kubernetes.APIServer != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "",
	}
	if c.IsSet("nb-address") {
		nb := northboundConfig(c)
		d.Northbound = &nb
	}
	if d.Timeout <= 0 {
		err = fmt.Errorf("--timeout %s: want a duration such as 5s", d.Timeout)
	}
	if o := c.String("o"); o != "text" && o != "json" {
		err = errors.Join(err, fmt.Errorf("-o %q: want text or json", o))
	}
	if n.Name == "" {
		n.Name = "unknown" // the doctor finds out, unlike the agent
	}
	return d, errors.Join(err, n.Validate())
}

func runDoctor(c *cli.Context) error {
	conf, err := doctorConfig(c)
	if err != nil {
		return err
	}
	tools, kernel, err := doctor.Real(conf.Node.Kubernetes)
	if err != nil {
		return err
	}
	defer kernel.Close()
	report := doctor.Examine(c.Context, conf, tools)
	write := report.WriteText
	if c.String("o") == "json" {
		write = report.WriteJSON
	}
	if err := write(c.App.Writer); err != nil {
		return err
	}
	if report.Problems > 0 {
		return cli.Exit("", exitProblems)
	}
	return nil
}
