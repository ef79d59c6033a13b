package term

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// This file is --output, as kubectl has it.

// Output is how answers are printed.
type Output struct {
	format    string
	structure *genericclioptions.JSONYamlPrintFlags
	templates *genericclioptions.KubeTemplatePrintFlags
	texts     []string // formats of the command's own
}

// The formats that a command writes itself.
const (
	Text = "text" // for people
	Wide = "wide" // for people, with more columns
	Name = "name" // KIND/NAME, a line each
	HTML = "html" // a page
)

// NewOutput returns the flag --output of a command that writes texts itself: the first when the flag isn't given.
func NewOutput(texts ...string) *Output {
	return &Output{format: texts[0], structure: genericclioptions.NewJSONYamlPrintFlags(), templates: genericclioptions.NewKubeTemplatePrintFlags(), texts: texts}
}

// JSONOutput returns --output=json.
func JSONOutput() *Output {
	o := NewOutput(Text)
	o.format = "json"
	return o
}

// Register adds the flags.
func (o *Output) Register(fs *pflag.FlagSet) {
	fs.StringVarP(&o.format, "output", "o", o.format, "one of "+strings.Join(o.formats(), ", "))
	fs.StringVar(o.templates.TemplateArgument, "template", "", "template, or path of one, for -o go-template, go-template-file, jsonpath and the like")
	fs.BoolVar(o.templates.AllowMissingKeys, "allow-missing-template-keys", true, "ignore fields in templates that are missing")
}

// Complete has shells complete the formats.
func (o *Output) Complete(cmd *cobra.Command) {
	Choices(cmd, "output", o.formats()...)
}

// Choices has shells complete a flag's values. The flag must be there.
func Choices(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(fmt.Sprintf("%s has no flag --%s: %v", cmd.Name(), flag, err))
	}
}

// formats are the values of --output, the command's own first.
func (o *Output) formats() []string {
	return append(append(slices.Clone(o.texts), "json", "yaml"), o.templates.AllowedFormats()...)
}

// Own returns the format if the command writes it itself, "" otherwise. An error says that there is no such format.
func (o *Output) Own() (string, error) {
	if slices.Contains(o.texts, o.format) {
		return o.format, nil
	}
	kind, _, _ := strings.Cut(o.format, "=")
	if kind == "" || !slices.Contains(o.formats(), kind) {
		return "", Usage(fmt.Errorf("--output is %q; it must be %s", o.format, oneOf(o.formats())))
	}
	_, err := o.printer()
	return "", err
}

// printer returns what prints answers in a format that isn't the command's own. An error is one of usage: a template
// that is missing, or can't be read.
func (o *Output) printer() (printers.ResourcePrinter, error) {
	p, err := o.structure.ToPrinter(o.format)
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		p, err = o.templates.ToPrinter(o.format)
	}
	if err != nil {
		return nil, Usage(fmt.Errorf("--output is %q: %w", o.format, err))
	}
	return p, nil
}

// oneOf lists words with "or" before the last.
func oneOf(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// JSON reports whether the format is json.
func (o *Output) JSON() bool { return o.format == "json" }

// apiVersion is that of printed answers.
const apiVersion = "berth.dev/v1alpha1"

// Print writes an answer in a format that isn't the command's own: as an object of a kind, with apiVersion.
func (o *Output) Print(out io.Writer, kind string, answer map[string]any) error {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind}
	for name, value := range answer {
		object[name] = value
	}
	u := &unstructured.Unstructured{Object: object}
	p, err := o.printer()
	if err != nil {
		return err
	}
	if err := p.PrintObj(u, out); err != nil {
		return fmt.Errorf("--output is %q: %w", o.format, err)
	}
	return nil
}

// PrintPath writes the answer to a path as an object of a kind.
func (o *Output) PrintPath(ctx context.Context, out io.Writer, from Source, kind, path string) error {
	answer, err := Read[map[string]any](ctx, from, path)
	if err != nil {
		return err
	}
	return o.Print(out, kind, *answer)
}

// PrintValue writes a value as an object of a kind.
func (o *Output) PrintValue(out io.Writer, kind string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	answer := map[string]any{}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	return o.Print(out, kind, answer)
}
