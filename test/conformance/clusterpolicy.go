package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/northbound-net/northbound/test/sandbox"
	"github.com/northbound-net/northbound/test/sandbox/image"
	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// Files in bin/ for the tests of ClusterNetworkPolicies.
const (
	policyProgram = "cluster-policies.test"
	policyKind    = "clusternetworkpolicies.yaml" // the kind, of the experimental channel
	policyImages  = "cluster-policies.images"     // the names of the images in their manifests, one a line
)

// policyTest is the test of network-policy-api that runs all others and writes a report.
const policyTest = "^TestConformanceProfiles$"

// policyLimit is how long all tests of ClusterNetworkPolicies may take. They take about 20 minutes.
const policyLimit = time.Hour

// policyFeatures are the features of the standard and of the experimental channel.
func policyFeatures() string {
	return strings.Join([]string{"ClusterNetworkPolicy", "ClusterNetworkPolicyNamedPorts",
		"ClusterNetworkPolicyEgressNodePeers"}, ",")
}

// RunClusterPolicies runs network-policy-api's own tests of ClusterNetworkPolicies, and prints what they print. It
// returns the file with the report that the tests write.
func RunClusterPolicies(ctx context.Context, o Options) (report string, err error) {
	if err := os.MkdirAll(o.Work, 0o755); err != nil {
		return "", fmt.Errorf("making the directory of results: %w", err)
	}
	report = filepath.Join(o.Work, "clusternetworkpolicy.yaml")
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("removing an old report: %w", err)
	}
	b, err := up(ctx, o, sandbox.DefaultNodes, (*bed).preparePolicies)
	if err != nil {
		return "", err
	}
	err = b.testPolicies(ctx, o, report)
	if ctx.Err() == nil {
		err = errors.Join(err, b.CheckSwitches(ctx))
	}
	return report, errors.Join(err, b.down(ctx))
}

// preparePolicies provides the image that the tests name, installs the kind, and waits until the master serves it.
func (b *bed) preparePolicies(ctx context.Context, log *progress.Log) error {
	step := log.Begin("image of the tests")
	if err := step.End(b.loadPolicyImage(ctx)); err != nil {
		return err
	}
	step = log.Begin("kind ClusterNetworkPolicy")
	return step.End(b.installPolicies(ctx))
}

func (b *bed) loadPolicyImage(ctx context.Context) error {
	bin := b.Options.BinDir
	known, err := contents(ctx, bin)
	if err != nil {
		return err
	}
	agnhost := known["agnhost"]
	bash, err := withLibraries(ctx, map[string]string{"/bin/bash": "/bin/bash"})
	if err != nil {
		return err
	}
	maps.Copy(agnhost.Data, bash)
	delete(agnhost.Files, "/coredns") // no test of these uses it
	named, err := os.ReadFile(filepath.Join(bin, policyImages))
	if err != nil {
		return fmt.Errorf("reading which images the tests name: %w", err)
	}
	return b.load(ctx, map[string]image.Image{"agnhost": agnhost},
		map[string][]string{"agnhost": strings.Fields(string(named))})
}

// probe is a policy that selects no pod.
const probe = `
apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: {name: probe}
spec:
  tier: Admin
  priority: 1000
  subject: {namespaces: {matchLabels: {probe: nobody}}}
  ingress: [{action: Deny, from: [{namespaces: {}}]}]
`

// installPolicies installs the kind, and waits until the master has noticed: until a policy has rows.
func (b *bed) installPolicies(ctx context.Context) error {
	if err := b.kubectlDo(ctx, "", "apply", "--filename="+filepath.Join(b.Options.BinDir, policyKind)); err != nil {
		return fmt.Errorf("installing kind ClusterNetworkPolicy: %w", err)
	}
	err := poll(ctx, func() error { return b.kubectlDo(ctx, probe, "apply", "--filename=-") })
	if err != nil {
		return fmt.Errorf("making a ClusterNetworkPolicy: %w", err)
	}
	err = poll(ctx, func() error {
		rows, err := b.NBCtl(ctx, "--bare", "--columns=_uuid", "find", "acl",
			`external_ids:"k8s.ovn.org/owner-type"=ClusterNetworkPolicy`)
		if err == nil && strings.TrimSpace(rows) == "" {
			err = errors.New("it has no rows")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for the rows of a ClusterNetworkPolicy: %w", err)
	}
	return b.kubectlDo(ctx, "", "delete", "clusternetworkpolicy", "probe")
}

// poll repeats try until it succeeds.
func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// testPolicies runs the tests.
func (b *bed) testPolicies(ctx context.Context, o Options, report string) error {
	ctx, cancel := context.WithTimeout(ctx, policyLimit)
	defer cancel()
	run := policyTest
	if o.Focus != nil {
		run += "/" + o.Focus.String()
	}
	cmd := b.Control.NetworkCommand(ctx, filepath.Join(o.Bin, policyProgram), "-test.v", "-test.run="+run,
		"-test.timeout="+policyLimit.String(), "--conformance-profiles=ClusterNetworkPolicy",
		"--supported-features="+policyFeatures(), "--report-output="+report, "--organization=northbound-net",
		"--project=northbound", "--url=https://github.com/northbound-net/northbound", "--version="+o.Version,
		"--contact=https://github.com/northbound-net/northbound/issues",
		"--additional-info=https://github.com/northbound-net/northbound/blob/master/docs/conformance.md")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.Control.AdminKubeconfig())
	cmd.Dir = o.Work
	output, err := os.Create(filepath.Join(o.Work, "cluster-policies.txt"))
	if err != nil {
		return fmt.Errorf("keeping the output of %s: %w", policyProgram, err)
	}
	defer output.Close()
	cmd.Stdout = io.MultiWriter(output, o.Out)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s, whose output is in %s: %w", policyProgram, output.Name(), err)
	}
	return nil
}
