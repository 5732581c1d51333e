package annotation

import "strings"

// Nearly every pod-networks annotation is one that a master wrote, and it is read at each start and with each change
// of the pod. canonical reads the form that MarshalAttachments gives a single attachment without routes, many times
// faster than package encoding/json. Of any other text it reads nothing: ok is false, and encoding/json reads that.
func canonical(value string) (key string, j podNetworkJSON, ok bool) {
	s := scanner{rest: value}
	s.skip(`{"`)
	key = s.text()
	s.skip(`:{"ip_addresses":["`)
	j.IPs = s.texts()
	s.skip(`,"mac_address":"`)
	j.MAC = s.text()
	if s.has(`,"gateway_ips":["`) {
		j.Gateways = s.texts()
	}
	if s.has(`,"ip_address":"`) {
		j.IPAddress = s.text()
	}
	if s.has(`,"gateway_ip":"`) {
		j.GatewayIP = s.text()
	}
	s.skip(`,"role":"`)
	j.Role = s.text()
	s.skip(`}}`)
	return key, j, !s.failed && s.rest == ""
}

// scanner reads a text from its beginning. After something unexpected it has failed.
type scanner struct {
	rest   string
	failed bool
}

// has skips a text that may come next.
func (s *scanner) has(text string) bool {
	rest, ok := strings.CutPrefix(s.rest, text)
	if ok {
		s.rest = rest
	}
	return ok
}

// skip skips a text that must come next.
func (s *scanner) skip(text string) { s.failed = !s.has(text) || s.failed }

// text reads up to the quotation mark that ends a string. A text in which JSON may mean something else than it says has
// failed.
func (s *scanner) text() string {
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text
		case c < ' ' || c > '~' || c == '\\':
			s.failed = true
			return ""
		}
	}
	s.failed = true
	return ""
}

// texts reads the strings of an array from within the first, up to the end of the array.
func (s *scanner) texts() []string {
	out := []string{s.text()}
	for s.has(`,"`) {
		out = append(out, s.text())
	}
	s.skip(`]`)
	return out
}
