package kinds

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
)

// reasonOpenPorts is the reason of a Problem with the ports that a pod opens.
const reasonOpenPorts = "InvalidOpenPorts"

// The most that a pod may open: each port is a flow of its node.
const (
	mostOpenPorts     = 32
	mostOpenPortsText = 4096 // bytes of the annotation
)

// decodeOpenPorts reads what a pod of a primary network opens in the cluster's own. A malformed list is a Problem and
// opens nothing.
func decodeOpenPorts(f *findings, annotations map[string]string) cluster.OpenPorts {
	raw, ok := annotations[annotation.OpenPorts]
	if !ok {
		return cluster.OpenPorts{}
	}
	list, err := parseOpenPorts(raw)
	if err != nil {
		f.bad(reasonOpenPorts, "annotation %s: %.64q: %v; want a list such as [{protocol: tcp, port: 9090}, "+
			"{protocol: icmp}]: the pod opens nothing", annotation.OpenPorts, raw, err)
	}
	return cluster.NewOpenPorts(list)
}

func parseOpenPorts(raw string) (out []cluster.OpenPort, err error) {
	var list []struct {
		Protocol string `json:"protocol"`
		Port     *int64 `json:"port"`
	}
	if len(raw) > mostOpenPortsText {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(raw), mostOpenPortsText)
	}
	document, err := onlyDocument(raw)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(document, &list); err != nil {
		return nil, errors.New("it is no list of protocol and port")
	}
	if len(list) > mostOpenPorts {
		return nil, fmt.Errorf("it has %d entries, want at most %d", len(list), mostOpenPorts)
	}
	for i, e := range list {
		p := cluster.OpenPort{Protocol: strings.ToLower(e.Protocol)}
		switch {
		case p.Protocol == "icmp" && e.Port != nil:
			return nil, fmt.Errorf("entry %d has protocol icmp and a port", i)
		case p.Protocol == "icmp":
		case p.Protocol != "tcp" && p.Protocol != "udp" && p.Protocol != "sctp":
			return nil, fmt.Errorf("entry %d has protocol %.16q, want tcp, udp, sctp or icmp", i, e.Protocol)
		case e.Port == nil || *e.Port < 1 || *e.Port > 65535:
			return nil, fmt.Errorf("entry %d has no port from 1 to 65535", i)
		default:
			p.Number = uint16(*e.Port)
		}
		out = append(out, p)
	}
	return out, nil
}

// onlyDocument is the YAML document of a text, which has no other. Empty ones and comments do not count.
func onlyDocument(raw string) (only []byte, err error) {
	reader := documents.NewYAMLReader(bufio.NewReader(strings.NewReader(raw)))
	for {
		document, err := reader.Read()
		if err != nil {
			return only, nil // that was the last
		}
		if value, err := yaml.YAMLToJSON(document); err == nil && string(value) == "null" {
			continue
		}
		if only != nil {
			return nil, errors.New("it has several YAML documents, want one")
		}
		only = document
	}
}
