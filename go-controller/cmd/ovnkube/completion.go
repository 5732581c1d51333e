package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// bashCompletion completes commands and flags in bash, and file names where neither fits. The program itself says what
// there is.
const bashCompletion = `# bash completion of ovnkube
_ovnkube() {
  local word=${COMP_WORDS[COMP_CWORD]} flag=()
  [[ $word == -* ]] && flag=("$word")
  mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[@]:0:COMP_CWORD}" "${flag[@]}" --generate-bash-completion \
    2>/dev/null)" -- "$word")
}
complete -o default -F _ovnkube ovnkube
`

const zshCompletion = `#compdef ovnkube
_ovnkube() {
  local -a found flag
  [[ $words[CURRENT] == -* ]] && flag=($words[CURRENT])
  found=("${(@f)$("${(@)words[1,CURRENT-1]}" $flag --generate-bash-completion 2>/dev/null)}")
  if [[ -n $found ]]; then
    compadd -- $found
  else
    _files
  fi
}
compdef _ovnkube ovnkube
`

// completionCommand is `ovnkube completion`.
func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands and flags in a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "In bash and zsh, type `source <(ovnkube completion bash)`, or the same with zsh. In zsh,\n" +
			"compinit must have run before. In fish, type `ovnkube completion fish | source`.",
		Before: func(*cli.Context) error { return nil },
		Action: func(c *cli.Context) error {
			scripts := map[string]func() (string, error){
				"bash": func() (string, error) { return bashCompletion, nil },
				"zsh":  func() (string, error) { return zshCompletion, nil },
				"fish": newApp().ToFishCompletion,
			}
			script := scripts[c.Args().First()]
			if script == nil || c.NArg() != 1 {
				return usageError{fmt.Errorf("completion: shell %q: want one of bash, zsh, fish",
					strings.Join(c.Args().Slice(), " "))}
			}
			text, err := script()
			if err != nil {
				return fmt.Errorf("writing the completion script: %w", err)
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return err
		},
	}
}

// manCommand is `ovnkube man`.
func manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page ovnkube(8)",
		Description: "`ovnkube man | man -l -` shows it. `ovnkube man > /usr/local/share/man/man8/ovnkube.8` installs it.",
		Action: func(c *cli.Context) error {
			text, err := newApp().ToManWithSection(8)
			if err != nil {
				return fmt.Errorf("writing the manual page: %w", err)
			}
			_, err = fmt.Fprint(c.App.Writer, text)
			return err
		},
	}
}

// similar is how alike two names must be for one to be suggested, from 0 to 1 (Jaro-Winkler).
const similar = 0.85

// didYouMean suggests the name that is most like the given one. It returns "" if none is.
func didYouMean(given string, names []string) string {
	best, most := "", similar
	for _, n := range names {
		if s := smetrics.JaroWinkler(given, n, 0.7, 4); s > most {
			best, most = n, s
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// unknown is the end of an error about a name that does not exist: a suggestion, or all that do exist.
func unknown(given string, names []string) string {
	if s := didYouMean(given, names); s != "" {
		return s
	}
	return "want one of " + strings.Join(names, ", ")
}

// flagNames are the flags of a command as they are typed.
func flagNames(flags []cli.Flag) (out []string) {
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				out = append(out, "--"+n)
			}
		}
	}
	return out
}

// undefinedFlag is how package flag begins its error about a flag that does not exist.
const undefinedFlag = "flag provided but not defined: -"

// onUsageError explains errors in the flags of a command.
func onUsageError(c *cli.Context, err error, _ bool) error {
	name, ok := strings.CutPrefix(err.Error(), undefinedFlag)
	if !ok {
		return usageError{err}
	}
	name = "--" + strings.TrimPrefix(name, "-")
	text := fmt.Sprintf("no flag %s", name)
	if c.Command != nil {
		if s := didYouMean(name, flagNames(c.Command.Flags)); s != "" {
			text += ": " + s
		}
	}
	return usageError{fmt.Errorf("%s", text)}
}
