package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestCompletion completes in real shells.
func TestCompletion(t *testing.T) {
	s := newShell(t, "")
	shells := map[string]func(words string) string{
		"bash": func(words string) string {
			return `source <(ovnkube completion bash); COMP_WORDS=(` + words + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); ` +
				`_ovnkube; printf '%s\n' "${COMPREPLY[@]}"`
		},
		"zsh": func(words string) string {
			// What zsh itself defines while it completes, with zsh's own comparison of the words.
			return `compdef() { }; compadd() { shift; print -l -- ${(M)@:#$words[CURRENT]*}; }; ` +
				`source <(ovnkube completion zsh); words=(` + words + `); CURRENT=$#words; _ovnkube`
		},
		"fish": func(words string) string {
			return `ovnkube completion fish | source; complete --do-complete "` + strings.ReplaceAll(words, `""`, "") +
				`" | string replace --regex "\t.*" ""`
		},
	}
	for _, k := range []struct{ words, want string }{
		{"ovnkube ma", "man master master-init"},
		{"ovnkube policy m", "matrix"},
		{"ovnkube plan --nb-c", "--nb-cacert --nb-cert"},
	} {
		for name, script := range shells {
			shell, err := exec.LookPath(name)
			if err != nil {
				t.Fatalf("%v: run test/deps.sh", err)
			}
			cmd := exec.CommandContext(t.Context(), shell, "-c", script(k.words))
			cmd.Dir, cmd.Env = s.dir, append(s.env, "HOME="+s.dir)
			out, err := cmd.CombinedOutput()
			have := strings.Fields(string(out))
			slices.Sort(have)
			if err != nil || strings.Join(have, " ") != k.want {
				t.Errorf("%s completes %q: %v, %q, want %q", name, k.words, err, out, k.want)
			}
		}
	}
}

// TestManualPage has every command.
func TestManualPage(t *testing.T) {
	out := ovnkube(t.Context(), nil, "man")
	if out.exit != 0 || !strings.Contains(out.stdout, "\n.TH ovnkube 8\n") {
		t.Errorf("ovnkube man prints no page ovnkube(8):\n%s", out)
	}
	for _, c := range newApp().Commands {
		if !c.Hidden && !strings.Contains(strings.ReplaceAll(out.stdout, `\-`, "-"), "\n.SH "+c.Name+"\n") {
			t.Errorf("the manual page has no section %q", c.Name)
		}
	}
}

// TestDidYouMean suggests what is similar, and nothing else.
func TestDidYouMean(t *testing.T) {
	names := []string{"master", "node", "plan", "explain"}
	for given, want := range map[string]string{
		"mastre": "did you mean master?", "nodes": "did you mean node?", "exlpain": "did you mean explain?",
		"apply": "", "": "", "x": "",
	} {
		if got := didYouMean(given, names); got != want {
			t.Errorf("didYouMean(%q): %q, want %q", given, got, want)
		}
	}
	if got, want := unknown("apply", names), "want one of master, node, plan, explain"; got != want {
		t.Errorf("unknown: %q, want %q", got, want)
	}
}

// TestShells refuses other shells.
func TestShells(t *testing.T) {
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		out := ovnkube(t.Context(), nil, args...)
		if out.exit != 1 || !strings.Contains(out.stderr, "want one of bash, zsh, fish") {
			t.Errorf("ovnkube %v: %s", args, out)
		}
	}
}
