package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/diagnostics"
	"github.com/northbound-net/northbound/go-controller/internal/kube/remote"
)

// completer is the name by which kubectl starts this program to complete a command line. The arguments are the words
// after "kubectl northbound"; the last one is to be completed. Source: Kubernetes, "Extend kubectl with plugins".
const completer = "kubectl_complete-northbound"

// completeTimeout limits how long the shell waits for names from the API server.
const completeTimeout = 3 * time.Second

// noFiles ends the answer: the shell shall not offer names of files. It is a directive of cobra, kubectl's library.
const noFiles = ":4"

// complete prints what the last word may become.
func complete(ctx context.Context, w io.Writer, words []string) error {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	if len(words) == 0 {
		words = []string{""}
	}
	l := readLine(newApp(), words[:len(words)-1])
	for _, found := range l.candidates(ctx, words[len(words)-1], listNames) {
		if _, err := fmt.Fprintln(w, found); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, noFiles)
	return err
}

// line is a command line without the word that is to be completed.
type line struct {
	app     *cli.App
	session remote.Options
	value   bool // the next word is a flag's value
	command string
	words   []string // after the command
}

// readLine reads the words before the one to be completed.
func readLine(app *cli.App, words []string) (l line) {
	l.app = app
	l.session.Namespace = "ovn-kubernetes"
	targets := map[string]*string{"--kubeconfig": &l.session.Kubeconfig, "--context": &l.session.Context,
		"--namespace": &l.session.Default, "-n": &l.session.Default, "--system-namespace": &l.session.Namespace,
		"--node": new(string)}
	for i := 0; i < len(words); i++ {
		name, value, given := strings.Cut(words[i], "=")
		target := targets[name]
		switch {
		case target != nil && given:
			*target = value
		case target != nil && i+1 == len(words):
			l.value = true
		case target != nil:
			i++
			*target = words[i]
		case !strings.HasPrefix(words[i], "-"):
			l.command, l.words = words[i], words[i+1:]
			return l
		}
	}
	return l
}

// lister lists names of a kind: node, pod or svc.
type lister func(ctx context.Context, o remote.Options, kind string) []string

// listNames asks the API server. Without an answer there is nothing to offer.
func listNames(ctx context.Context, o remote.Options, kind string) (names []string) {
	s, err := remote.New(o)
	if err != nil {
		return nil
	}
	switch kind {
	case "node":
		names, err = s.Nodes(ctx, diagnostics.Node)
	case "pod":
		names, err = s.PodNames(ctx)
	default:
		names, err = s.ServiceNames(ctx)
	}
	if err != nil {
		return nil
	}
	return names
}

// candidates are the words that begin with what was typed.
func (l line) candidates(ctx context.Context, typed string, list lister) []string {
	var all []string
	switch {
	case l.value:
	case l.command == "" && strings.HasPrefix(typed, "-"):
		for _, f := range l.app.Flags {
			all = append(all, "--"+f.Names()[0])
		}
	case l.command == "":
		for _, c := range l.app.Commands {
			all = append(all, c.Name)
		}
	default:
		all = l.arguments(ctx, typed, list)
	}
	return slices.DeleteFunc(all, func(c string) bool { return !strings.HasPrefix(c, typed) })
}

// arguments are what may stand behind a command.
func (l line) arguments(ctx context.Context, typed string, list lister) []string {
	i := slices.IndexFunc(diagnostics.Tools(), func(t diagnostics.Tool) bool { return t.Name == l.command })
	if i < 0 {
		return nil
	}
	t := diagnostics.Tools()[i]
	named := func(kind, prefix string) (out []string) {
		for _, n := range list(ctx, l.session, kind) {
			out = append(out, prefix+n)
		}
		return out
	}
	at := len(l.words)
	kind, _, hasKind := strings.Cut(typed, "/")
	hasKind = hasKind && slices.Contains([]string{"node", "pod", "svc"}, kind)
	switch {
	case strings.HasPrefix(typed, "-"):
		return t.OptionNames()
	case t.Name == "doctor":
		return slices.DeleteFunc(named("node", ""), func(n string) bool { return slices.Contains(l.words, n) })
	case (t.Name == "tcpdump" || t.Name == "trace") && at == 0, t.Name == "trace" && at == 1 && !hasKind:
		pods := named("pod", "")
		if at == 1 {
			pods = append(pods, named("svc", "svc/")...)
		}
		return pods
	case (t.Name == "explain" && at == 0 || t.Name == "trace" && at == 1) && hasKind:
		return named(kind, kind+"/")
	case t.Name == "explain" && at == 0:
		return []string{"node/", "pod/", "svc/"}
	case special()[t.Name] != nil:
		return nil
	}
	return toolWords(t, at, named)
}

// toolWords are the words of a tool whose arguments are the tool's own: its node, its daemon and its commands.
func toolWords(t diagnostics.Tool, at int, named func(kind, prefix string) []string) []string {
	var places []func() []string
	if t.Place == diagnostics.Node {
		places = append(places, func() []string { return named("node", "") })
	}
	if t.Targets != nil {
		places = append(places, func() []string { return slices.Sorted(maps.Keys(t.Targets)) })
	}
	places = append(places, func() []string { return t.Commands })
	if at >= len(places) {
		return nil
	}
	return places[at]()
}
