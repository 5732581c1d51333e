package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/test/e2e/machines"
	"github.com/northbound-net/northbound/test/sandbox"
)

// page is what an operator reads.
const page = "../../../docs/operate/install.md"

// blocks are the commands under a heading of the page, such as "## Install", block by block.
func blocks(t *testing.T, heading string) []string {
	t.Helper()
	return machines.Blocks(t, page, heading)
}

// operator is a shell in a directory with the packaged chart and the manifest, as after `make chart`. The manifest has
// this cluster's values, and its helm adds them to an installation. Nothing else in the page's commands is changed but
// the names that they have in capitals.
type operator struct {
	*installed
	dir   string
	names *strings.Replacer
}

func (c *installed) operator(t *testing.T) *operator {
	t.Helper()
	o := &operator{installed: c, dir: t.TempDir()}
	bin, tools := c.Options.BinDir, filepath.Join(o.dir, "tools")
	for name, script := range map[string]string{
		"helm": fmt.Sprintf(`case $1 in install) set -- "$@" --values %s ;; esac; exec %s "$@"`,
			filepath.Join(c.Options.State(), "values.yaml"), filepath.Join(bin, "helm")),
		"kubectl":            fmt.Sprintf(`exec %s kubectl-in-place "$@"`, filepath.Join(bin, "sandbox")),
		"ovnkube":            fmt.Sprintf(`exec %s "$@"`, filepath.Join(bin, "ovnkube")),
		"kubectl-northbound": fmt.Sprintf(`exec %s "$@"`, filepath.Join(bin, "kubectl-northbound")),
	} {
		if err := os.MkdirAll(tools, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	completer := filepath.Join(tools, "kubectl_complete-northbound")
	if err := os.Symlink(filepath.Join(bin, "kubectl-northbound"), completer); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Helm(t.Context(), "package", c.Chart(), "--destination", filepath.Join(o.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(o.dir, "bin", "northbound-*.tgz"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("helm package made %v, %v; want one file", packages, err)
	}
	values := filepath.Join(c.Options.State(), "values.yaml")
	manifest, err := c.Helm(t.Context(), "template", sandbox.ReleaseName, c.Chart(), "--namespace", sandbox.Namespace,
		"--values", values)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(packages[0], ".tgz")+".yaml", []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(packages[0]), "northbound-"), ".tgz")
	pod := c.kubectl(t, "get", "pods", "--selector", "app=ovnkube-node", "--output", "jsonpath={.items[0].metadata.name}")
	// Revision 0 is the one before.
	o.names = strings.NewReplacer("VERSION", version, "REVISION", "0", "POD", pod, "{A,B,C}", "{n1,n2,n3}", "{B}", "{n2}")
	return o
}

// try runs a block of commands.
func (o *operator) try(ctx context.Context, block string) (string, error) {
	cmd := o.Control.NetworkCommand(ctx, "bash", "-euc", o.names.Replace(block))
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(o.dir, "tools")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+o.Control.AdminKubeconfig(), "HELM_CACHE_HOME="+o.dir, "HELM_CONFIG_HOME="+o.dir,
		"HELM_DATA_HOME="+o.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs a block of commands, which must succeed.
func (o *operator) does(t *testing.T, block string) {
	t.Helper()
	if out, err := o.try(t.Context(), block); err != nil {
		t.Fatalf("$ %s\n%s%v", block, out, err)
	}
}
