package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServerOf reads the server from a kubelet's kubeconfig, whose certificates a pod does not see.
func TestServerOf(t *testing.T) {
	for server, want := range map[string]string{
		"https://172.18.0.1:6443": "", "http://172.18.0.1:8080": "want https://HOST:PORT", "": "want https://HOST:PORT",
	} {
		file := filepath.Join(t.TempDir(), "kubelet.conf")
		text := "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: '" + server + "'}\n" +
			"contexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n" +
			"users:\n- name: u\n  user: {client-certificate: /nowhere/kubelet.pem, client-key: /nowhere/kubelet.pem}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := serverOf(file)
		if want == "" && (err != nil || got != server) {
			t.Errorf("serverOf with server %q: %q, %v", server, got, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("serverOf with server %q: %v, want an error that names the file and has %q", server, err, want)
		}
	}
}
