package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

const unitsDir = "../../../dist/systemd"

// program is the path where packages install ovnkube.
const program = "/usr/bin/ovnkube"

// Every unit runs a command that exists, with flags that exist.
func TestUnits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(unitsDir, "*.service"))
	if err != nil || len(files) < 2 {
		t.Fatalf("units %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			unit := readFile(t, file)
			command := started(t, unit)
			for _, a := range strings.Fields(values(unit, "ExecStart")[0])[2:] {
				if flag, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "="); strings.HasPrefix(a, "-") && !hasFlag(&command, flag) {
					t.Errorf("`ovnkube %s` has no flag %s", command.Name, a)
				}
			}
			verify(t, filepath.Base(file), unit)
		})
	}
}

// started returns the command that a unit runs.
func started(t *testing.T, unit string) cli.Command {
	t.Helper()
	commands := values(unit, "ExecStart")
	if len(commands) != 1 {
		t.Fatalf("ExecStart %q, want one", commands)
	}
	argv := strings.Fields(commands[0])
	if len(argv) < 2 || argv[0] != program {
		t.Fatalf("ExecStart %q, want one of %s", argv, program)
	}
	command := newApp().Command(argv[1])
	if command == nil {
		t.Fatalf("there is no command %q", argv[1])
	}
	return *command
}

// systemd restarts the two daemons when they fail. All their settings, also those in comments, are environment
// variables of flags.
func TestServices(t *testing.T) {
	for _, name := range []string{"ovnkube-master", "ovnkube-node"} {
		t.Run(name, func(t *testing.T) {
			unit := readFile(t, filepath.Join(unitsDir, name+".service"))
			command := started(t, unit)
			if name != "ovnkube-"+command.Name {
				t.Errorf("it runs %q", command.Name)
			}
			if file := values(unit, "EnvironmentFile"); !slices.Equal(file, []string{"-/etc/default/" + name}) {
				t.Errorf("EnvironmentFile %q", file)
			}
			if r := values(unit, "Restart"); !slices.Equal(r, []string{"on-failure"}) {
				t.Errorf("Restart %q", r)
			}
			settings := values(unit, "Environment")
			for line := range strings.Lines(readFile(t, filepath.Join(unitsDir, name+".default"))) {
				if line = strings.TrimSpace(strings.TrimPrefix(line, "#")); strings.HasPrefix(line, "NORTHBOUND_") {
					settings = append(settings, line)
				}
			}
			if len(settings) < 5 {
				t.Errorf("settings %q, want the usual ones", settings)
			}
			for _, s := range settings {
				if variable, _, _ := strings.Cut(s, "="); !knows(command, variable) {
					t.Errorf("%s is the variable of no flag of `ovnkube %s`", variable, command.Name)
				}
			}
		})
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// values lists the values of a unit's settings with the given key (systemd.syntax(7)).
func values(unit, key string) (out []string) {
	for line := range strings.Lines(unit) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}

// knows reports whether a flag of the command is read from the variable.
func knows(c cli.Command, variable string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		documented, ok := f.(cli.DocGenerationFlag)
		return ok && slices.Contains(documented.GetEnvVars(), variable)
	})
}

// verify lets systemd check the unit, with /bin/true in place of ovnkube. Without systemd it checks only that sections
// and settings are well formed.
func verify(t *testing.T, name, unit string) {
	t.Helper()
	section := ""
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		key, _, isSetting := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
		case !isSetting || section == "" || key != strings.TrimSpace(key) || key == "":
			t.Errorf("line %q is no setting of a section", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: only the form of the unit was checked")
		return
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, program, "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), file) || strings.Contains(string(out), name) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
