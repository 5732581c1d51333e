package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// Behind Multus the configuration is of a version that every runtime knows: Multus chooses without regard to the
// runtime. When Multus goes, the choice is the runtime's again.
func TestConfBehindMultus(t *testing.T) {
	c := config.Node{CNIConfDir: t.TempDir(), CNIBinDir: t.TempDir(), CNISocketDir: "/run/ovn-kubernetes/cni"}
	multus := filepath.Join(c.CNIConfDir, "00-multus.conf")
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return nil }, "1.1.0"},
		{func() error { return os.WriteFile(multus, []byte(`{"type": "multus"}`), 0o600) }, "1.0.0"},
		{func() error { return os.Remove(multus) }, "1.1.0"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if line, err := keepConf(c); err != nil || line == "" {
			t.Fatalf("keeping the configuration: %q, %v: want that it is written", line, err)
		}
		if line, err := keepConf(c); err != nil || line != "" {
			t.Errorf("keeping the configuration again: %q, %v", line, err)
		}
		list, err := libcni.NetworkConfFromFile(filepath.Join(c.CNIConfDir, names.CNIConfFile))
		if err != nil || list.CNIVersion != step.want {
			t.Errorf("the version is %+v, %v, want %s", list, err, step.want)
		}
	}
}
