package newkind_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/northbound-net/northbound/go-controller/internal/allocate"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
	"github.com/northbound-net/northbound/go-controller/internal/kube/kinds"
	"github.com/northbound-net/northbound/go-controller/internal/kube/manifest"
	"github.com/northbound-net/northbound/go-controller/internal/kube/source"
	"github.com/northbound-net/northbound/go-controller/internal/kube/write"
	"github.com/northbound-net/northbound/go-controller/internal/metrics"
	"github.com/northbound-net/northbound/go-controller/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunTests(m)) }

// apiWidget is a kind that the product does not have, as the API has it.
type apiWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Color string `json:"color"`
	} `json:"spec"`
}

func (w *apiWidget) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.DeepCopy()
	return &out
}

type apiWidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []apiWidget `json:"items"`
}

func (l *apiWidgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = slices.Clone(l.Items)
	return &out
}

const kindWidget cluster.Kind = "Widget"

// widget is the kind as the cluster has it.
type widget struct {
	name  cluster.Name
	color string
}

func (w *widget) Ref() cluster.Ref { return cluster.Ref{Kind: kindWidget, Name: w.name} }

func (w *widget) Equal(o cluster.Object) bool {
	v, ok := o.(*widget)
	return ok && *w == *v
}

func decodeWidget(obj runtime.Object) (cluster.Object, []cluster.Problem) {
	w, ok := obj.(*apiWidget)
	if !ok {
		return nil, nil
	}
	out := &widget{name: kinds.NameOf(w), color: w.Spec.Color}
	if w.Spec.Color == "plaid" {
		out.color = ""
		return out, []cluster.Problem{{Ref: out.Ref(), UID: string(w.UID), Reason: "InvalidColor",
			Message: `spec.color: "plaid", want red or blue: none is used`}}
	}
	return out, nil
}

// widgetRow is all that the product is told of widgets.
func widgetRow(lw *cache.ListWatch) kinds.Kind {
	return kinds.Kind{
		Kind: kindWidget, Resource: schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "widgets"},
		Namespaced: true, Subresource: "status", ValidName: validation.IsDNS1123Label,
		WatchedBy: []kinds.Daemon{kinds.Master}, AnnotatedBy: []kinds.Daemon{kinds.Master},
		New:       func() kinds.Object { return &apiWidget{} },
		NewList:   func() runtime.Object { return &apiWidgetList{} },
		ListWatch: func(*client.Clients) *cache.ListWatch { return lw },
		Decode:    decodeWidget,
	}
}

func newWidget(color string) *apiWidget {
	w := &apiWidget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.test/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", UID: "u", ResourceVersion: "1"},
	}
	w.Spec.Color = color
	return w
}

// widgets lists one widget, and sends what it is given as a watch.
func widgets(events *watch.FakeWatcher) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &apiWidgetList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []apiWidget{*newWidget("plaid")}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("not served")
			}
			return events, nil
		},
	}
}

// server has no objects of the kinds that the product has. It keeps what is written.
type server struct {
	kinds  []kinds.Kind
	mu     sync.Mutex
	wrote  []string // "METHOD path body" of patches
	events []string // bodies
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodPatch:
		s.wrote = append(s.wrote, r.URL.Path+" "+string(body))
		fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}}`)
		return
	case http.MethodPost:
		s.events = append(s.events, string(body))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"}}`)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		_ = http.NewResponseController(w).Flush()
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		return
	}
	for _, k := range s.kinds {
		if strings.HasSuffix(r.URL.Path, "/"+k.Resource.Resource) {
			fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[]}`,
				k.APIVersion(), k.Kind)
		}
	}
}

// start serves an API and connects to it.
func start(t *testing.T) (*server, *client.Clients) {
	t.Helper()
	s := &server{kinds: kinds.All()}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	c, err := client.New(config.Kubernetes{APIServer: h.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// A row is all that package kube needs of a new kind: manifests, watches and permissions follow from it.
func TestANewKindIsOneRow(t *testing.T) {
	events := watch.NewFake()
	rows := append(kinds.All(), widgetRow(widgets(events)))
	t.Run("manifest", func(t *testing.T) {
		text := "apiVersion: example.test/v1\nkind: Widget\nmetadata: {name: w, namespace: ns}\nspec: {color: plaid, " +
			"size: 1}\n"
		m := manifest.Read(rows, []string{manifest.Stdin}, strings.NewReader(text))
		if len(m.Objects) != 1 || m.Objects[0].Ref().String() != "Widget ns/w" || len(m.Problems) != 1 || len(m.Errors) != 0 {
			t.Errorf("read %+v", m)
		}
		if fmt.Sprint(m.Warnings) != `[stdin: Widget ns/w: unknown field "spec.size"]` {
			t.Errorf("warnings %v", m.Warnings)
		}
		named := strings.Replace(text, "name: w", "name: W.W", 1)
		bad := manifest.Read(rows, []string{manifest.Stdin}, strings.NewReader(named))
		if len(bad.Errors) != 1 || !strings.Contains(bad.Errors[0].Error(), `Widget ns/W.W: metadata.name "W.W": `) {
			t.Errorf("a name that is not valid: %v", bad.Errors)
		}
		without := manifest.Read(kinds.All(), []string{manifest.Stdin}, strings.NewReader(text))
		if len(without.Objects) != 0 || fmt.Sprint(without.Ignored) != "[{example.test/v1 Widget 1}]" {
			t.Errorf("without the row: %+v", without)
		}
	})
	t.Run("watch", func(t *testing.T) {
		_, c := start(t)
		s := source.New(c, rows)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		defer running.Wait()
		defer cancel()
		var problems []cluster.Problem
		await := func(what string, want cluster.Object) {
			t.Helper()
			testkit.Eventually(t, what, func() string {
				events, more := s.Take()
				problems = append(problems, more...)
				for _, e := range events {
					if want == nil && e.New == nil || want != nil && e.New != nil && want.Equal(e.New) {
						return ""
					}
				}
				return fmt.Sprint(events)
			})
		}
		name := cluster.Name{Namespace: "ns", Name: "w"}
		await("the widget of the list", &widget{name: name})
		if len(problems) != 1 || problems[0].Reason != "InvalidColor" {
			t.Errorf("problems %v", problems)
		}
		events.Modify(newWidget("red"))
		await("the change", &widget{name, "red"})
		events.Delete(newWidget("red"))
		await("the end", nil)
		testkit.Eventually(t, "all kinds", func() string {
			if !s.Synced() {
				return "not listed"
			}
			return ""
		})
	})
}

// Events and patches of a new kind go where its row says. Without its row they are refused, and go nowhere.
func TestWriteNewKind(t *testing.T) {
	ref := cluster.Ref{Kind: kindWidget, Name: cluster.Name{Namespace: "ns", Name: "w"}}
	problem := cluster.Problem{Ref: ref, UID: "u", Reason: "InvalidColor", Message: "spec.color"}
	patch := allocate.Patch{Ref: ref, UID: "u", Annotations: map[string]string{"a": "b"}}
	for what, c := range map[string]struct {
		rows    []kinds.Kind
		refused float64
		wrote   string
		events  int
	}{
		"with its row": {append(kinds.All(), widgetRow(nil)), 0,
			`[/apis/example.test/v1/namespaces/ns/widgets/w/status ` +
				`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/annotations/a","value":null},` +
				`{"op":"add","path":"/metadata/annotations/a","value":"b"}]]`, 1},
		"without": {kinds.All(), 1, "[]", 0},
	} {
		t.Run(what, func(t *testing.T) {
			s, clients := start(t)
			var logged strings.Builder
			m := metrics.NewMaster(prometheus.NewRegistry())
			w := write.New(clients, c.rows, "test", m, slog.New(slog.NewTextHandler(&logged, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { w.Run(ctx) })
			w.Patch(patch)
			w.Report(problem)
			testkit.Eventually(t, "what is written", func() string {
				s.mu.Lock()
				defer s.mu.Unlock()
				if got := fmt.Sprintf("%v %d", s.wrote, len(s.events)); got != fmt.Sprintf("%s %d", c.wrote, c.events) {
					return "got " + got
				}
				return ""
			})
			cancel()
			running.Wait()
			if got := testutil.ToFloat64(m.Patches.WithLabelValues("Widget", "refused")); got != c.refused {
				t.Errorf("%v patches are counted as refused, want %v", got, c.refused)
			}
			if missing := strings.Contains(logged.String(), `kind \"Widget\" has no row`); missing != (c.refused > 0) {
				t.Errorf("logged: %s", logged.String())
			}
			for _, e := range s.events {
				if !strings.Contains(e, "Widget") || !strings.Contains(e, "example.test/v1") {
					t.Errorf("the Event is about %q", e)
				}
			}
			if err := write.Patch(t.Context(), clients, c.rows, patch); (err != nil) != (c.refused > 0) {
				t.Errorf("a patch by hand: %v", err)
			}
		})
	}
}
