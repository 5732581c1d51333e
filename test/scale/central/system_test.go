package central

import "testing"

func TestRecomputes(t *testing.T) {
	const text = "Node: SB_chassis\n- recompute:            1\n- compute:              0\n- cancel:               0\n" +
		"Node: lflow\n- recompute:           12\n- compute:              3\n- cancel:               0\n"
	got := parseRecomputes(text)
	if len(got) != 2 || got["SB_chassis"] != 1 || got["lflow"] != 12 {
		t.Errorf("%v, want SB_chassis 1 and lflow 12", got)
	}
}
