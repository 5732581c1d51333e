package tenants

import (
	"fmt"
	"strings"
	"testing"
)

// some is namespaces with tenants: "shop=shop stock=shop".
func some(text string) Namespaces {
	var out Namespaces
	for _, f := range strings.Fields(text) {
		name, tenant, _ := strings.Cut(f, "=")
		out = append(out, Namespace{Name: name, Tenant: tenant})
	}
	return out
}

// Namespaces join the tenant that another is of, become global, or are alone.
func TestChanges(t *testing.T) {
	long := strings.Repeat("a", 63)
	const is = "bank=bank dns=* lone=blue shop=shop stock=shop till=bank-1"
	for _, c := range []struct {
		is, do, want string
	}{
		{is, "join shop bank", "bank=shop"},
		{is, "join stock bank dns", "bank=shop dns=shop"},
		{is, "join shop stock", "stock=shop already"},
		{is, "join dns shop", "joining Namespace dns: it is global"},
		{is, "join gone shop", `there is no Namespace "gone"`},
		{is, "join shop gone none bank", "there is no Namespace \"gone\"\nthere is no Namespace \"none\""},
		{is, "global shop dns", "shop=* dns=* already"},
		{is, "isolate stock", "stock=stock"},
		{is, "isolate shop", "shop=shop-1"},
		{is, "isolate shop stock", "shop=shop-1 stock=stock"},
		{is, "isolate stock shop", "stock=stock shop=shop already"},
		{is, "isolate bank", "bank=bank already"},
		{is, "isolate lone", "lone=blue already"},
		{is, "isolate dns", "dns=dns"},
		{"a=b b=c", "isolate a", "a=a"},
		{"bank=bank bank-1=x till=bank", "isolate bank", "bank=bank-2"},
		{long + "=" + long + " b=" + long, "isolate " + long, long + "=" + long[:61] + "-1"},
	} {
		n, args := some(c.is), strings.Fields(c.do)
		var changes []Change
		var err error
		switch args[0] {
		case "join":
			changes, err = n.Join(args[1], args[2:])
		case "isolate":
			changes, err = n.Isolate(args[1:])
		default:
			changes, err = n.Global(args[1:])
		}
		var got []string
		for _, x := range changes {
			text := x.Name + "=" + x.To
			if !x.Needed() {
				text += " already"
			}
			got = append(got, text)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = fmt.Sprint(err)
		}
		if !strings.HasPrefix(text, c.want) || err == nil && text != c.want {
			t.Errorf("%s: %s; want %s", c.do, text, c.want)
		}
	}
}
