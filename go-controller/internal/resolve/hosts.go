package resolve

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// ParseHosts reads the addresses of names from a file such as /etc/hosts (hosts(5)). Names that no policy can have,
// such as localhost, are left out.
func ParseHosts(r io.Reader) (map[string][]netip.Addr, error) {
	out := map[string][]netip.Addr{}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %.64q: want an address, then names", number, fields[0])
		}
		for _, text := range fields[1:] {
			if name, err := cluster.ParseDomainName(text); err == nil {
				out[name] = append(out[name], a.WithZone(""))
			}
		}
	}
	return out, lines.Err()
}
