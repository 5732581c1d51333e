package attachment

import (
	"fmt"
	"strings"
	"testing"
)

// The annotation names definitions of the policy's namespace and of default. The rest is left out, and said.
func TestPolicyFor(t *testing.T) {
	many := strings.Repeat("a", 9) + "0"
	for i := range 20 {
		many += fmt.Sprintf(", n%02d", i)
	}
	for value, want := range map[string]string{
		"blue":                            "[shop.blue] []",
		" red ,shop/blue, blue,":          "[shop.blue shop.red] []",
		"default/shared, blue":            "[default.shared shop.blue] []",
		"bank/blue, blue":                 `[shop.blue] ["bank/blue": pods of namespace shop can't be in that network`,
		"UPPER":                           `[] ["UPPER": want the name of a NetworkAttachmentDefinition`,
		"a/b/c":                           `[] ["a/b/c": want the name`,
		", ,":                             `[] [", ,": names no network`,
		"":                                `[] ["": names no network`,
		strings.Repeat("x,", mostBytes):   "[] [the value has",
		many:                              "[shop.aaaaaaaaa0 shop.n00 ",
		"blue," + strings.Repeat("z", 99): "[shop.blue shop.",
	} {
		networks, refused := PolicyFor("shop", value)
		if got := fmt.Sprint(networks, " ", refused); !strings.HasPrefix(got, want) {
			t.Errorf("%.40q: %s, want %s", value, got, want)
		}
	}
	if networks, refused := PolicyFor("shop", many); len(networks) != 16 || len(refused) != 1 {
		t.Errorf("of 21 networks %d are taken, %v", len(networks), refused)
	}
}
