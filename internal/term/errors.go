package term

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// This file tells errors apart by the exit code of the program.

// Exit codes: of any other error, of arguments and flags that can't be used, and of a run that didn't meet what was
// expected of it.
const (
	ExitError  = 1
	ExitUsage  = 2
	ExitUnmet  = 3
	didYouMean = "; did you mean --"
)

// cobraErrors are the beginnings of errors of arguments that cobra finds: it has no type for them.
var cobraErrors = []string{"unknown command ", "accepts ", "requires at least ", "requires at most ", "required flag(s) "}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

type unmetError struct{ error }

func (e unmetError) Unwrap() error { return e.error }

// Usage marks an error as one of arguments or flags; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Unmet marks an error as an expectation that wasn't met; nil stays nil.
func Unmet(err error) error {
	if err == nil {
		return nil
	}
	return unmetError{err}
}

// ExitCode returns the program's exit code after an error.
func ExitCode(err error) int {
	switch {
	case errors.As(err, &usageError{}):
		return ExitUsage
	case errors.As(err, &unmetError{}):
		return ExitUnmet
	}
	for _, begin := range cobraErrors {
		if strings.HasPrefix(err.Error(), begin) {
			return ExitUsage
		}
	}
	return ExitError
}

// FlagError words an error of a command's flags: it suggests the flag that may have been meant, and names the help.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		if near := nearFlag(cmd, name); near != "" {
			text += didYouMean + near + "?"
		}
	}
	return Usage(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
}
