package conformance

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// Part says what specs have to do with primary networks.
type Part string

// Parts of a run about primary networks. Other runs have none.
const (
	NoPrimary Part = ""
	Beside    Part = "beside" // two namespaces with primary networks are there while the specs run
	Inside    Part = "inside" // the specs' own namespaces are in a primary network
)

// kinds are the kinds that declare networks, and the files in dist/kubernetes with them.
func kinds() (files, names []string) {
	return []string{"networkattachmentdefinition.yaml", "userdefinednetworks.yaml"}, []string{
		"network-attachment-definitions.k8s.cni.cncf.io", "userdefinednetworks.k8s.ovn.org",
		"clusteruserdefinednetworks.k8s.ovn.org"}
}

// installKinds installs the kinds that declare networks.
func (b *bed) installKinds(ctx context.Context, dir string) error {
	files, names := kinds()
	for _, f := range files {
		if err := b.kubectlDo(ctx, "", "apply", "--filename="+filepath.Join(dir, f)); err != nil {
			return fmt.Errorf("installing the kinds in %s: %w", f, err)
		}
	}
	err := b.kubectlDo(ctx, "", append([]string{"wait", "--for=condition=Established", "--timeout=60s", "crd"},
		names...)...)
	if err != nil {
		return fmt.Errorf("waiting for the kinds of networks: %w", err)
	}
	return nil
}

// primaryLabel is the label of a namespace with a primary network.
const primaryLabel = "k8s.ovn.org/primary-user-defined-network"

// insideManifest puts the namespaces that e2e.test makes into a primary network.
//
//go:embed inside.yaml
var insideManifest string

// insideProbe is a namespace as e2e.test makes them. The API server enforces a policy a moment after it was made.
const insideProbe = `
apiVersion: v1
kind: Namespace
metadata: {name: probe, labels: {e2e-run: probe}}
`

// prepareInside has the API server give each namespace that e2e.test makes the label of primary networks.
func (b *bed) prepareInside(ctx context.Context, log *progress.Log, manifests string) error {
	step := log.Begin("primary network of the specs' namespaces")
	return step.End(b.labelNamespaces(ctx, manifests))
}

func (b *bed) labelNamespaces(ctx context.Context, manifests string) error {
	if err := b.installKinds(ctx, manifests); err != nil {
		return err
	}
	if err := b.kubectlDo(ctx, insideManifest, "apply", "--filename=-"); err != nil {
		return fmt.Errorf("making the specs' primary network: %w", err)
	}
	return poll(ctx, func() error {
		if err := b.kubectlDo(ctx, insideProbe, "create", "--filename=-"); err != nil {
			return fmt.Errorf("making a namespace: %w", err)
		}
		found, err := b.Kubectl(ctx, "get", "namespace", "--selector=e2e-run=probe,"+primaryLabel, "--output=name").Output()
		if err := errors.Join(err, b.kubectlDo(ctx, "", "delete", "namespace", "probe", "--timeout=60s")); err != nil {
			return fmt.Errorf("looking at a namespace, and deleting it: %w", err)
		}
		if len(found) == 0 {
			return errors.New("the API server does not give new namespaces the label " + primaryLabel)
		}
		return nil
	})
}
