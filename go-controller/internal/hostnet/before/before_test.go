package before_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/hostnet/before"
	"github.com/northbound-net/northbound/go-controller/internal/hostnet/item"
	"github.com/northbound-net/northbound/go-controller/internal/hostplan"
)

// kernel has sysctls by path.
type kernel map[string]hostplan.Item

// Read implements item.Kernel.
func (k kernel) Read(want []hostplan.Item) (out []hostplan.Item, err error) {
	for _, w := range want {
		if have, ok := k[w.Key()]; ok {
			out = append(out, have)
		}
	}
	return out, nil
}

// Apply implements item.Kernel.
func (k kernel) Apply(c item.Change) error {
	k[c.Want.Key()] = c.Want
	return nil
}

func TestNote(t *testing.T) {
	sysctl := func(path, link, value string) hostplan.Item {
		return hostplan.Sysctl{Path: path, Link: link, Value: value}
	}
	host := kernel{}
	for _, i := range []hostplan.Item{sysctl("net/ipv4/ip_forward", "", "0"), sysctl("net/ipv4/same", "", "1"),
		sysctl("net/ipv4/conf/k8s-n1/rp_filter", "k8s-n1", "0")} {
		host[i.Key()] = i
	}
	plan := []hostplan.Item{sysctl("net/ipv4/ip_forward", "", "1"), sysctl("net/ipv4/same", "", "1"),
		sysctl("net/ipv4/conf/k8s-n1/rp_filter", "k8s-n1", "2"), sysctl("net/ipv4/absent", "", "1")}
	file := filepath.Join(t.TempDir(), "run", before.FileName)
	want := []hostplan.Item{sysctl("net/ipv4/ip_forward", "", "0")}
	// The second agent finds the values that the first has set, and the third the file of both.
	for range 3 {
		s, err := before.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Note(host, plan, "k8s-n1"); err != nil {
				t.Fatal(err)
			}
			if got := s.Items(); !slices.Equal(got, want) {
				t.Errorf("noted %v, want %v", got, want)
			}
			if _, err := item.Supplement(t.Context(), host, plan[:3]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), before.FileName)
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Open(file); err == nil || !strings.Contains(err.Error(), file+": unexpected end") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
