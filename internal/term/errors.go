package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthproject/berth/sim/report"
)

// This file tells errors apart by the exit code of the program.

// Exit codes: of any other error, of arguments, flags and files that can't be used, and of a run that didn't meet what
// was expected of it.
const (
	ExitError  = 1
	ExitUsage  = 2
	ExitUnmet  = 3
	didYouMean = "; did you mean --"
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

type unmetError struct{ error }

func (e unmetError) Unwrap() error { return e.error }

// Usage marks an error as one of arguments, flags, or files that they name: nothing was begun, and it is for the user
// to correct what was given. nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// FileError marks an error of reading or playing a file as one of usage, unless it came of ctx's end: then the file may
// be as good as any. nil stays nil.
func FileError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return Usage(err)
}

// Creatable refuses the path that a flag gives for a file to write when its directory isn't there, so that what takes
// long isn't begun in vain. "" is no file.
func Creatable(flag, path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	if there, err := os.Stat(dir); err != nil || !there.IsDir() {
		return Usage(fmt.Errorf("%s is %q, but there is no directory %s; create it, or give another path", flag, path, dir))
	}
	if there, err := os.Stat(path); err == nil && there.IsDir() {
		return Usage(fmt.Errorf("%s is %q, which is a directory; give the path of a file", flag, path))
	}
	return nil
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
	return ExitError
}

// valuesOf says what values flags of a type take, where their parsers name functions of Go instead.
var valuesOf = map[string]string{
	"bool": "true or false", "float32": "a number", "float64": "a number",
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
	"uint": "a whole number of at least 0", "uint64": "a whole number of at least 0", "Level": "a whole number of at least 0",
	"duration": "a duration such as 30s, 5m or 1h30m",
}

// Printable returns the text of an error without control characters: it may quote anybody.
func Printable(err error) string { return report.Printable(err.Error()) }

// FlagError words an error of a command's flags: it says what a value must be, suggests the flag that may have been
// meant, and names the help.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
		if values := valuesOf[bad.GetFlag().Value.Type()]; values != "" {
			text = fmt.Sprintf("--%s is %q; it must be %s", bad.GetFlag().Name, bad.GetValue(), values)
		}
	}
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		if near := nearFlag(cmd, name); near != "" {
			text += didYouMean + near + "?"
		}
	}
	return Usage(errors.New(text + "; see " + cmd.CommandPath() + " --help"))
}
