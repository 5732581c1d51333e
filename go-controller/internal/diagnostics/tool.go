package diagnostics

import (
	"fmt"
	"slices"
	"strings"
)

// Place is a kind of pod that has a diagnostics server.
type Place string

// All places.
const (
	Node     Place = "node"     // every node: Open vSwitch, ovn-controller, the kernel's network
	Master   Place = "master"   // what the network makes of Kubernetes' objects
	Database Place = "database" // the Northbound and Southbound databases, and ovn-northd
)

// Places lists all places.
func Places() []Place { return []Place{Node, Master, Database} }

// Port is the TCP port, on the loopback address alone, of the diagnostics server.
func (p Place) Port() int { return map[Place]int{Master: 9412, Node: 9413, Database: 9414}[p] }

// App is the value of the label "app" of the pods.
func (p Place) App() string {
	return map[Place]string{Node: "ovnkube-node", Master: "ovnkube-master", Database: "ovn-db"}[p]
}

// Names of ServiceAccounts. Who may create a token of one may use the tools that ask for it.
const (
	Viewer   = "northbound-viewer"   // everything but pods' traffic
	Capturer = "northbound-capturer" // pods' traffic
)

// Tool is a program that a diagnostics server runs for its callers.
type Tool struct {
	Name    string
	Place   Place
	Account string // the ServiceAccount whose token the caller needs
	Usage   string // what it is for, one line
	Program []string
	// Targets replaces Program: the first word of the arguments chooses one.
	Targets map[string][]string
	// Commands are the words that the arguments may begin with. nil: any.
	Commands []string
	// Check, if there is one, says what is wrong with the words behind the command.
	Check   func(command string, words []string) error
	Options []Option
	// Redact is set if the output may have values of SecretKeys.
	Redact bool
}

// Option is an option that callers may give to a tool.
type Option struct {
	Name  string // "--format" or "-f"
	Value bool   // it has a value: --format=VALUE, or -f VALUE
	Only  string // the only value that is allowed; "" for any
}

// Command is the command line that runs the tool with these arguments. The error says what is not allowed, and what is.
func (t Tool) Command(args []string) ([]string, error) {
	words, err := t.words(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	program := t.Program
	if t.Targets != nil {
		if len(words) == 0 || t.Targets[words[0]] == nil {
			return nil, fmt.Errorf("%s: argument %q: want one of %s", t.Name, first(words), strings.Join(t.targets(), ", "))
		}
		program = t.Targets[words[0]]
		at := slices.Index(args, words[0])
		args = slices.Concat(args[:at], args[at+1:])
		words = words[1:]
	}
	command := t.command(words)
	if t.Commands != nil && command == "" {
		return nil, fmt.Errorf("%s: command %q: want one of %s", t.Name, strings.Join(words[:min(2, len(words))], " "),
			strings.Join(t.Commands, ", "))
	}
	if t.Check != nil {
		if err := t.Check(command, words[len(strings.Fields(command)):]); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return slices.Concat(program, args), nil
}

// command is the allowed command that the words begin with, or "".
func (t Tool) command(words []string) string {
	for _, c := range t.Commands {
		if fields := strings.Fields(c); len(words) >= len(fields) && slices.Equal(words[:len(fields)], fields) {
			return c
		}
	}
	return ""
}

func (t Tool) targets() (out []string) {
	for name := range t.Targets {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// words are the arguments without the options, each of which must be allowed. A long option's value must follow "=":
// so there is no doubt which words are values.
func (t Tool) words(args []string) (out []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			out = append(out, a)
			continue
		}
		name, value, joined := strings.Cut(a, "=")
		at := slices.IndexFunc(t.Options, func(o Option) bool { return o.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("option %q: want one of %s", name, strings.Join(t.OptionNames(), ", "))
		}
		o := t.Options[at]
		long := strings.HasPrefix(name, "--")
		switch {
		case !o.Value && joined:
			return nil, fmt.Errorf("option %s: it has no value", name)
		case !o.Value:
			continue
		case long && !joined, !long && joined:
			return nil, fmt.Errorf("option %q: want %s", a, o.form())
		case !long:
			if i++; i == len(args) {
				return nil, fmt.Errorf("option %s: the value is missing", name)
			}
			value = args[i]
		}
		if o.Only != "" && value != o.Only || o.Only == "" && strings.HasPrefix(value, "-") {
			return nil, fmt.Errorf("option %s: value %q is not allowed: want %s", name, value, o.form())
		}
	}
	return out, nil
}

// form is how an option is written.
func (o Option) form() string {
	value := o.Only
	if value == "" {
		value = "VALUE"
	}
	switch {
	case !o.Value:
		return o.Name
	case strings.HasPrefix(o.Name, "--"):
		return o.Name + "=" + value
	}
	return o.Name + " " + value
}

// OptionNames lists the options as they are written.
func (t Tool) OptionNames() (out []string) {
	for _, o := range t.Options {
		out = append(out, o.form())
	}
	return out
}
