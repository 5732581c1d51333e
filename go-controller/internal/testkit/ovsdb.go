package testkit

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// NBSchemas lists the Northbound schema files that integration tests run on, by
// the OVN version that ships them.
func NBSchemas() map[string]string {
	internal := internalDir()
	return map[string]string{
		"23.03": filepath.Join(internal, "nbdb", "ovn-nb.ovsschema"),                      // schema 7.0.0
		"25.03": filepath.Join(internal, "testkit", "testdata", "ovn-nb-25.03.ovsschema"), // schema 7.11.0
		"26.03": filepath.Join(internal, "testkit", "testdata", "ovn-nb-26.03.ovsschema"), // schema 7.18.0
		"26.09": filepath.Join(internal, "testkit", "testdata", "ovn-nb-26.09.ovsschema"), // schema 7.19.0
	}
}

// VSwitchSchema is the schema file of the Open_vSwitch database.
func VSwitchSchema() string { return filepath.Join(internalDir(), "vswitchdb", "vswitch.ovsschema") }

// internalDir is the directory of the product's packages. A test runs in its package's directory, of any module of the
// repository. Elsewhere it is one that does not exist, which whoever opens a file there says.
func internalDir() string {
	above, internal := ".", filepath.Join("go-controller", "internal")
	for range maxDepth {
		at := filepath.Join(above, internal)
		if _, err := os.Stat(filepath.Join(at, "nbdb")); err == nil {
			if at, err = filepath.Abs(at); err == nil {
				return at
			}
		}
		above = filepath.Join(above, "..")
	}
	return internal
}

// maxDepth is more than the deepest package of the repository has directories above it.
const maxDepth = 16

// StartOVSDB starts an ovsdb-server with an empty database of the given schema and returns its remote, "unix:PATH".
// When the test ends it is stopped and its files are removed. options are further ones of ovsdb-server(1).
func StartOVSDB(t testing.TB, schemaPath string, options ...string) (remote string) {
	t.Helper()
	dir := runDir(t)
	db := filepath.Join(dir, "test.db")
	Run(t, "ovsdb-tool", "create", db, schemaPath)
	return serve(t, dir, append(options, db)...)
}

// ServeOVSDB is StartOVSDB with a database of this content, a file in the format
// of ovsdb(5). It is converted to the schema first, unless that is "".
func ServeOVSDB(t testing.TB, content, schemaPath string) (remote string) {
	t.Helper()
	dir := runDir(t)
	db := filepath.Join(dir, "test.db")
	if err := os.WriteFile(db, []byte(content), 0o600); err != nil {
		t.Fatalf("writing a database: %v", err)
	}
	if schemaPath != "" {
		Run(t, "ovsdb-tool", "convert", db, schemaPath)
	}
	return serve(t, dir, db)
}

// runDir is a directory with a path short enough for a unix socket (108
// bytes, unix(7)), which t.TempDir does not promise.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nbtest")
	if err != nil {
		t.Fatalf("making a run directory: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	return dir
}

func serve(t testing.TB, dir string, args ...string) string {
	t.Helper()
	sock := filepath.Join(dir, "db.sock")
	args = append([]string{"--unixctl=" + filepath.Join(dir, "ctl"), "--remote=punix:" + sock}, args...)
	p := start(t, Tool(t, "ovsdb-server"), args...)
	p.waitFor(t, "listening on "+sock, func() bool {
		c, err := net.Dial("unix", sock)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return "unix:" + sock
}
