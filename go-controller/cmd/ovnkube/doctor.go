package main

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/doctor"
)

// exitProblems is the exit code when the doctor found problems.
const exitProblems = 2

// doctorCommand is `ovnkube doctor`.
func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "diagnose this node: print what is wrong and the commands that fix it",
		Description: "Checks the host, Open vSwitch, OVN, the paths to other nodes, the CNI plugin and, if one is given,\n" +
			"the API server. It changes nothing. Give it the same flags or environment as `ovnkube node`.\n\n" +
			"Exit code 0: no problem; 2: problems; 1: an error kept it from running.",
		Flags:  doctorFlags(),
		Action: runDoctor,
	}
}

func doctorFlags() []cli.Flag {
	own := []cli.Flag{
		printableFlag(asText, ""),
		timeoutFlag(5*time.Second, "`DURATION` that each check may take"),
	}
	return slices.Concat(own, nodeFlags(), northboundFlags())
}

// doctorConfig reads doctorFlags.
func doctorConfig(c *cli.Context) (doctor.Config, error) {
	k := kubernetesConfig(c)
	haveKubernetes := k.Kubeconfig+k.APIServer+os.Getenv("KUBERNETES_SERVICE_HOST") != ""
	var found config.Settings
	if haveKubernetes {
		found, _ = published(c.Context, k) // a check says if the API server does not answer
	}
	n, err := agentSettings(c, found)
	if err != nil {
		return doctor.Config{}, err
	}
	d := doctor.Config{Node: n, Timeout: c.Duration("timeout"), Kubernetes: haveKubernetes}
	if c.IsSet("nb-address") {
		nb := northboundConfig(c)
		d.Northbound = &nb
	}
	if n.Name == "" {
		n.Name = "unknown" // only for Validate: the doctor, unlike the agent, finds the name itself
	}
	return d, n.Validate()
}

func runDoctor(c *cli.Context) error {
	write, badOutput := printer(c, asText)
	conf, err := doctorConfig(c)
	if err := errors.Join(badOutput, err); err != nil {
		return err
	}
	tools, closed, err := doctor.Real(conf.Node.Kubernetes)
	if err != nil {
		return err
	}
	defer closed()
	diagnosis := doctor.Examine(c.Context, conf, tools)
	if err := write(diagnosis); err != nil {
		return err
	}
	return exitWith(diagnosis)
}
