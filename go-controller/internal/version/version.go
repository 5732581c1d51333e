// Package version says which build of Northbound a program is: the linker's values, or else what Go recorded.
package version

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
)

// The linker sets these (go build -ldflags "-X PACKAGE.tag=..."): test/building.sh. They are empty in other builds.
var (
	tag        string //nolint:gochecknoglobals // the linker can set nothing else
	commit     string //nolint:gochecknoglobals // the linker can set nothing else
	commitTime string //nolint:gochecknoglobals // the linker can set nothing else
)

// Info describes the build of the running program.
type Info struct {
	Version  string `json:"version"`              // as git describe prints it; "(devel)" if nobody recorded it
	Commit   string `json:"commit,omitempty"`     // all hexadecimal digits; "" if nobody recorded it
	Time     string `json:"commitTime,omitempty"` // of the commit, RFC 3339 in UTC; "" if nobody recorded it
	Go       string `json:"goVersion"`            // such as go1.26.0
	Platform string `json:"platform"`             // such as linux/amd64
}

// Get returns the build of the running program.
func Get() Info {
	recorded, ok := debug.ReadBuildInfo()
	if !ok {
		recorded = &debug.BuildInfo{}
	}
	return Info{Version: tag, Commit: commit, Time: commitTime}.orRecorded(recorded)
}

// orRecorded fills in what the linker did not set.
func (i Info) orRecorded(b *debug.BuildInfo) Info {
	if i.Version == "" {
		// Go's own values describe one commit together. They must not be mixed with those of the linker.
		i.Version = cmp.Or(b.Main.Version, "(devel)")
		i.Commit, i.Time = setting(b, "vcs.revision"), setting(b, "vcs.time")
	}
	i.Go, i.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	return i
}

func setting(b *debug.BuildInfo, key string) string {
	for _, s := range b.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// String returns one line, such as "v1.2.3, commit 0123456789ab, go1.26.0 linux/amd64".
func (i Info) String() string {
	text := i.Version
	if i.Commit != "" {
		text += ", commit " + i.Commit[:min(12, len(i.Commit))]
	}
	return text + ", " + i.Go + " " + i.Platform
}

// WriteText writes a line for each value.
func (i Info) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "version\t%s\ncommit\t%s\ncommit time\t%s\nGo\t%s\nplatform\t%s\n",
		i.Version, cmp.Or(i.Commit, "not recorded"), cmp.Or(i.Time, "not recorded"), i.Go, i.Platform)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	return nil
}

// WriteJSON writes a JSON object.
func (i Info) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(i); err != nil {
		return fmt.Errorf("writing the version: %w", err)
	}
	return nil
}
