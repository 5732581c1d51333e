package doctor

import (
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// What becomes of fragments depends on the datapath, on ovn-northd's version, and on the option.
func TestFragments(t *testing.T) {
	for _, c := range []struct {
		datapath, northd, option string
		status                   Status
		message                  string
	}{
		{config.DatapathSystem, "", "", OK, "the kernel's datapath"},
		{config.DatapathNetdev, "", "", NotChecked, "no version of ovn-northd"},
		{config.DatapathNetdev, "25.03.0-20.37.0-84.10", "true", OK, "ovn-northd is 25.03.0"},
		{config.DatapathNetdev, "26.09.0-21.13.0-84.16", "", OK, "--acl-ct-translation"},
		{config.DatapathNetdev, "26.09.0-21.13.0-84.16", "true", OK, "rules of ports match them"},
	} {
		h := facts{c: Config{Node: config.Node{DatapathType: c.datapath}},
			global: map[string]string{"northd_internal_version": c.northd, "acl_ct_translation": c.option}}
		if f := checkFragments(t.Context(), &h); f.Status != c.status || !strings.Contains(f.Message, c.message) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}
