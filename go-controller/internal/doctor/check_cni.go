package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"

	"github.com/northbound-net/northbound/go-controller/internal/cniconf"
	"github.com/northbound-net/northbound/go-controller/internal/names"
)

// conflist is what matters of a CNI configuration (CNI specification 1.1.0,
// section 1).
type conflist struct {
	CNIVersion string   `json:"cniVersion"`
	Plugins    []plugin `json:"plugins"`
}

type plugin struct {
	Type   string `json:"type"`
	Socket string `json:"socket"`
}

func (h *facts) readConf() (c conflist, path string, err error) {
	path = filepath.Join(h.c.Node.CNIConfDir, names.CNIConfFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return c, path, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, path, fmt.Errorf("reading %s: %w", path, err)
	}
	return c, path, nil
}

func checkCNIConf(ctx context.Context, h *facts) Finding {
	conf, path, err := h.readConf()
	const rewrite = "systemctl restart ovnkube-node  # which writes it when the node is ready"
	if err != nil {
		return problem("no CNI configuration: %v", err).fixed(rewrite)
	}
	// Runtimes take the first file of the directory (libcni.ConfFiles).
	files, err := cniconf.Files(h.c.Node.CNIConfDir)
	if err != nil {
		return unchecked("%v", err)
	}
	multus := cniconf.MultusFirst(h.c.Node.CNIConfDir)
	if len(files) > 0 && files[0] != names.CNIConfFile && !multus {
		return problem("%s comes before %s in %s: the runtime takes that one", files[0], names.CNIConfFile,
			h.c.Node.CNIConfDir).fixed("mv " + filepath.Join(h.c.Node.CNIConfDir, files[0]) + " /root/")
	}
	socket := ""
	for _, p := range conf.Plugins {
		if p.Type == names.CNIPlugin {
			socket = p.Socket
		}
	}
	if socket != h.c.Node.CNISocket() {
		return problem("%s has %s talk to %q, want %q", path, names.CNIPlugin, socket, h.c.Node.CNISocket()).fixed(rewrite)
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return problem("nobody listens for %s: %v", names.CNIPlugin, err).fixed("systemctl restart ovnkube-node")
	}
	conn.Close()
	if multus {
		return ok("%s, version %s, behind Multus, and the agent listens", path, conf.CNIVersion)
	}
	return ok("%s, version %s, and the agent listens", path, conf.CNIVersion)
}

func checkCNIPlugins(ctx context.Context, h *facts) Finding {
	conf, _, err := h.readConf()
	if err != nil {
		conf.Plugins = []plugin{{Type: names.CNIPlugin}}
	}
	if cniconf.MultusFirst(h.c.Node.CNIConfDir) {
		conf.Plugins = append(conf.Plugins, plugin{Type: names.OverlayPlugin})
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	var found []string
	for _, p := range conf.Plugins {
		path := filepath.Join(h.c.Node.CNIBinDir, p.Type)
		install := "install -m 755 " + p.Type + " " + h.c.Node.CNIBinDir + "/"
		if p.Type == names.OverlayPlugin {
			install = "ln -sf " + names.CNIPlugin + " " + path
		}
		if _, err := os.Stat(path); err != nil {
			return problem("the plugin is missing: %v", err).fixed(install,
				"# when the runtime looks elsewhere, --cni-bin-dir is another")
		}
		info, err := invoke.GetVersionInfo(ctx, path, nil)
		if err != nil {
			return problem("%s does not tell its versions: %v", path, err).fixed(install)
		}
		versions := info.SupportedVersions()
		if conf.CNIVersion != "" && !slices.Contains(versions, conf.CNIVersion) {
			return problem("%s knows CNI %s, the configuration is of %s", path, strings.Join(versions, ", "), conf.CNIVersion).
				fixed(install + "  # a newer one")
		}
		found = append(found, fmt.Sprintf("%s to %s", p.Type, versions[len(versions)-1]))
	}
	return ok("in %s: %s", h.c.Node.CNIBinDir, strings.Join(found, ", "))
}
