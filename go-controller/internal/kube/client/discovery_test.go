package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestTag asks a server whose list changes, and one that has no tag.
func TestTag(t *testing.T) {
	tag, bodies := `"one"`, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/apis" || !strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
			t.Errorf("%s with Accept %q", r.URL, r.Header.Get("Accept"))
		}
		if tag != "" && r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		bodies++
		w.Header().Set("ETag", tag)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	d, err := newDiscovery(&rest.Config{Host: server.URL + "/prefix"})
	if err != nil {
		t.Fatal(err)
	}
	known := ""
	for range 3 {
		if known, err = d.Tag(t.Context(), known); err != nil || known != `"one"` || bodies != 1 {
			t.Fatalf("tag %s, error %v, %d lists; want one list", known, err, bodies)
		}
	}
	tag = `"two"`
	if known, err = d.Tag(t.Context(), known); err != nil || known != tag || bodies != 2 {
		t.Errorf("tag %s, error %v, %d lists; want the new tag and a second list", known, err, bodies)
	}
	tag = ""
	if got, err := d.Tag(t.Context(), known); err == nil || !strings.Contains(err.Error(), "want a tag") {
		t.Errorf("a server without tags: %q, %v", got, err)
	}
}
