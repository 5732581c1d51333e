package newkind_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/core"
	"github.com/northbound-net/northbound/go-controller/internal/explain"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/manifest"
	"github.com/northbound-net/northbound/go-controller/internal/names"
	"github.com/northbound-net/northbound/go-controller/internal/nb"
	"github.com/northbound-net/northbound/go-controller/internal/nbdb"
	"github.com/northbound-net/northbound/go-controller/internal/offline"
	"github.com/northbound-net/northbound/go-controller/internal/translate"
	"github.com/northbound-net/northbound/go-controller/internal/translate/all"
)

const ownerWidget names.Kind = "Widget"

// painter is a new feature: a widget is an address set with an address for its
// color, and a color may be used only once.
type painter struct{ schema *nb.Schema }

func (painter) Kind() names.Kind { return ownerWidget }

func (painter) Depends() translate.Dependencies {
	return translate.Dependencies{Kinds: []cluster.Kind{kindWidget}, Subjects: []cluster.Subject{colorShared}}
}

func (painter) Indexes() []cluster.Index { return []cluster.Index{&colors{users: map[string]int{}}} }

func (painter) Owners(s *cluster.State) []nb.Owner {
	var out []nb.Owner
	for o := range s.Objects(kindWidget) {
		out = append(out, nb.Owner{Kind: ownerWidget, Name: o.Ref().Name.String()})
	}
	return out
}

func (p painter) Affected(s *cluster.State, c cluster.Change) []nb.Owner {
	if c.Concerns(colorShared) {
		return append(p.Owners(s), nb.Owner{Kind: ownerWidget, Name: c.Ref.Name.String()})
	}
	return []nb.Owner{{Kind: ownerWidget, Name: c.Ref.Name.String()}}
}

func (p painter) Rows(s *cluster.State, o nb.Owner) (translate.Rows, error) {
	w, ok := s.Object(cluster.Ref{Kind: kindWidget, Name: cluster.ParseName(o.Name)}).(*widget)
	if !ok {
		return translate.Rows{}, nil
	}
	var out translate.Rows
	if i, _ := cluster.IndexOf[*colors](s); i.users[w.color] > 1 {
		out.Reports = []cluster.Problem{{Ref: w.Ref(), Reason: "ColorInUse", Message: "spec.color: " + w.color + " is taken"}}
	}
	key := nb.Key{Table: nbdb.AddressSetTable, Owner: o, Role: names.RoleAddresses}
	out.Rows = []nb.Row{p.schema.NewRow(key, &nbdb.AddressSet{
		UUID: names.RowUUID(key.Table, o.Kind, o.Name, key.Role, ""),
		Name: "widget_" + strings.ReplaceAll(o.Name, "/", "_"), Addresses: map[string][]string{"red": {"192.0.2.1"}}[w.color],
	})}
	return out, nil
}

// colors is the feature's own index: how many widgets have a color.
type colors struct {
	users  map[string]int
	before string // the color of the widget that changes
}

const colorShared cluster.Subject = "color shared"

func (*colors) Kinds() []cluster.Kind { return []cluster.Kind{kindWidget} }

func (x *colors) Before(s *cluster.State, r cluster.Ref) {
	x.before = ""
	if w, ok := s.Object(r).(*widget); ok {
		x.before = w.color
		x.users[w.color]--
	}
}

func (x *colors) After(s *cluster.State, r cluster.Ref) []cluster.Topic {
	now := ""
	if w, ok := s.Object(r).(*widget); ok {
		now = w.color
		x.users[now]++
	}
	var out []cluster.Topic
	for _, color := range []string{x.before, now} {
		if x.before != now && x.users[color] > 0 { // others have it, who may have to hear
			out = append(out, cluster.Topic{Subject: colorShared, Key: cluster.Name{Name: color}})
		}
	}
	return out
}

// translators are the product's and the new one.
func translators(s *nb.Schema) translate.Set { return all.Translators(s).With(painter{s}) }

func widgetNamed(n, color string) *widget {
	return &widget{name: cluster.Name{Namespace: "ns", Name: n}, color: color}
}

func came(objects ...cluster.Object) []cluster.Event {
	var out []cluster.Event
	for _, o := range objects {
		out = append(out, cluster.Event{Ref: o.Ref(), New: o})
	}
	return out
}

// A translator is all that a new feature needs besides: rows, plans, reports and
// explanations follow from it.
func TestANewFeatureIsOneTranslator(t *testing.T) {
	t.Run("translate and explain, from a manifest", func(t *testing.T) {
		text := "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w, namespace: ns}\nspec: {color: red}\n"
		m := manifest.Read(append(kinds.All(), widgetRow(nil)), []string{manifest.Stdin}, strings.NewReader(text))
		s := nb.NewSchema()
		c := offline.NewOf(config.DefaultCluster(), s, translators(s), m.Objects)
		db, errs := c.Database()
		if set := addressSet(db); len(errs) != 0 || set == nil || !slices.Equal(set.Addresses, []string{"192.0.2.1"}) {
			t.Fatalf("address set %+v, errors %v", set, errs)
		}
		e, err := explain.OfOwner(c.Core, nb.Owner{Kind: ownerWidget, Name: "ns/w"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Compare(c.Core, db); err != nil || len(e.Rows) != 1 || e.Rows[0].State != explain.Equal {
			t.Errorf("explained as %+v, %v", e, err)
		}
	})
	t.Run("events, plans and reports", func(t *testing.T) {
		s := nb.NewSchema()
		c, db := core.New(config.DefaultCluster(), s, translators(s)), nb.NewDatabase(s)
		c.Start()
		step := func(events ...cluster.Event) (*core.Batch, []cluster.Problem) {
			t.Helper()
			b := c.Plan(db, c.Step(events).Dirty, nil)
			if err := b.Err(); err != nil {
				t.Fatal(err)
			}
			if err := db.Apply(b.Plans...); err != nil {
				t.Fatal(err)
			}
			return b, c.News(b)
		}
		if b, _ := step(came(widgetNamed("a", "red"))...); len(b.Plans) != 1 || addressSet(db) == nil {
			t.Errorf("plans %v, database %v", b.Plans, addressSet(db))
		}
		if b, told := step(came(widgetNamed("b", "red"))...); len(b.Plans) != 1 || len(told) != 2 {
			t.Errorf("another of one color: plans %v, reports %v; want one plan, and both told", b.Plans, told)
		}
		b, _ := step(cluster.Event{Ref: widgetNamed("b", "").Ref()})
		if len(b.Plans) != 1 || len(db.Rows(nbdb.AddressSetTable)) != 1 {
			t.Errorf("one goes: plans %v", b.Plans)
		}
		if _, told := step(came(widgetNamed("c", "red"))...); len(told) != 2 {
			t.Errorf("another comes: reports %v, want both told again", told)
		}
		step(cluster.Event{Ref: widgetNamed("c", "").Ref()})
		db.Drop(nb.Ref{Table: nbdb.AddressSetTable, UUID: addressSet(db).UUID}) // somebody removes the row
		if b := c.Plan(db, c.Owners(), nil); len(b.Plans) < 1 {
			t.Error("no plan repairs it")
		}
	})
}

func addressSet(db *nb.Database) *nbdb.AddressSet {
	for _, m := range db.Rows(nbdb.AddressSetTable) {
		if set, ok := m.(*nbdb.AddressSet); ok && strings.HasPrefix(set.Name, "widget_ns_") {
			return set
		}
	}
	return nil
}
