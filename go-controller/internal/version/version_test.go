package version

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// The linker's values win as a whole; without them those of Go count.
func TestOrRecorded(t *testing.T) {
	recorded := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "feedfeedfeedfeed"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}}
	for _, c := range []struct {
		linked   Info
		recorded *debug.BuildInfo
		want     Info
	}{
		{Info{"v1", "c1", "t1", "", ""}, recorded, Info{"v1", "c1", "t1", "", ""}},
		{Info{Version: "v1"}, recorded, Info{Version: "v1"}},
		{Info{}, recorded, Info{"v0.0.0-2026", "feedfeedfeedfeed", "2026-01-02T03:04:05Z", "", ""}},
		{Info{}, &debug.BuildInfo{}, Info{Version: "(devel)"}},
	} {
		c.want.Go, c.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
		if have := c.linked.orRecorded(c.recorded); have != c.want {
			t.Errorf("linked %+v: have %+v, want %+v", c.linked, have, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	full := Info{"v1.2.3", "0123456789abcdef", "2026-01-02T03:04:05Z", "go1.26.0", "linux/amd64"}
	bare := Info{Version: "(devel)", Go: "go1.26.0", Platform: "linux/amd64"}
	for _, c := range []struct {
		info             Info
		line, text, json string
	}{
		{
			full, "v1.2.3, commit 0123456789ab, go1.26.0 linux/amd64",
			"version      v1.2.3\ncommit       0123456789abcdef\ncommit time  2026-01-02T03:04:05Z\n" +
				"Go           go1.26.0\nplatform     linux/amd64\n",
			`{"version":"v1.2.3","commit":"0123456789abcdef","commitTime":"2026-01-02T03:04:05Z",` +
				`"goVersion":"go1.26.0","platform":"linux/amd64"}`,
		},
		{
			bare, "(devel), go1.26.0 linux/amd64",
			"version      (devel)\ncommit       not recorded\ncommit time  not recorded\n" +
				"Go           go1.26.0\nplatform     linux/amd64\n",
			`{"version":"(devel)","goVersion":"go1.26.0","platform":"linux/amd64"}`,
		},
	} {
		var text, json strings.Builder
		if err := c.info.WriteText(&text); err != nil {
			t.Error(err)
		}
		if err := c.info.WriteJSON(&json); err != nil {
			t.Error(err)
		}
		compact := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(json.String())
		if c.info.String() != c.line || text.String() != c.text || compact != c.json {
			t.Errorf("%+v: line %q, text\n%s, JSON\n%s", c.info, c.info.String(), text.String(), compact)
		}
	}
}
