package term

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthproject/berth/edge/api"
)

// This file gives all commands of a program the manners of kubectl: suggestions for what is mistyped, and
// --version.

// Polish makes all commands below root suggest what may have been meant, and print the version that text says.
func Polish(root *cobra.Command, version string) {
	root.SetFlagErrorFunc(FlagError)
	root.InitDefaultCompletionCmd() // cobra adds these two when the program runs, which is too late
	root.InitDefaultHelpCmd()
	polish(root, version)
}

func polish(cmd *cobra.Command, version string) {
	HasVersion(cmd, version)
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return argumentError(cmd, check(cmd, args)) }
	}
	if cmd.Name() == "help" {
		cmd.Args = helpTopic
	}
	if cmd.HasSubCommands() && cmd.RunE == nil && cmd.Run == nil {
		// What comes with a mistyped command are that one's flags, so the command is told first.
		cmd.DisableFlagParsing = true
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
				return unknownCommand(cmd, args[i])
			}
			return nil
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return runParent(cmd, args, version) }
	}
	for _, sub := range cmd.Commands() {
		polish(sub, version)
	}
}

// runParent does what a command does that has subcommands and was given none of them.
func runParent(cmd *cobra.Command, args []string, version string) error {
	for _, arg := range args {
		switch arg {
		case "-h", "--help":
		case "--version":
			_, err := fmt.Fprint(cmd.OutOrStdout(), version)
			return err
		default:
			return FlagError(cmd, fmt.Errorf("unknown flag: %s", arg))
		}
	}
	return cmd.Help()
}

// helpTopic refuses a command that there is no help about: cobra prints the program's then, as if nothing were wrong.
func helpTopic(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = unknownCommand(about, rest[0])
	}
	return err
}

// NoArguments refuses any argument. cobra.NoArgs calls it an unknown command, also where there are no commands.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is one argument too many: the command takes none", args[0])
	}
	return nil
}

// argumentError marks what a command says of its arguments as an error of usage, and names the help.
func argumentError(cmd *cobra.Command, err error) error {
	if err == nil || errors.As(err, &usageError{}) {
		return err
	}
	return Usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// HasVersion gives a command the flag --version, unless it has one.
func HasVersion(cmd *cobra.Command, version string) {
	if cmd.Flags().Lookup("version") == nil {
		cmd.Version = version
		cmd.SetVersionTemplate("{{.Version}}")
		cmd.InitDefaultVersionFlag()
	}
}

// unknownCommand says that a command has no subcommand of a name, with the one that may have been meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	if near := likeliest(name, names); near != "" {
		text += "; did you mean " + near + "?"
	}
	return Usage(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
}

// nearFlag returns the flag of a command that may have been meant, "" for none that is near.
func nearFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return likeliest(name, names)
}

// likeliest returns the name that is most like one, "" when none is near: more than a third of the letters differ.
func likeliest(name string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	near := slices.MinFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(api.Distance(name, a), api.Distance(name, b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	if api.Distance(name, near) > (len(name)+2)/3 {
		return ""
	}
	return near
}
