package page

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/berthproject/berth/edge/api"
	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
	"github.com/berthproject/berth/internal/term"
	"github.com/berthproject/berth/sim/report"
	"github.com/berthproject/berth/sim/scenario"
	"github.com/berthproject/berth/ui"
)

// This file writes the page as one file with its answers inside: it asks for nothing, and its security policy
// lets it ask for nothing. What must hold: its size is bounded, and where something is left out the page says so.

// What a report has at most: rows of a list, objects of a kind with their details, and bytes of answers.
const (
	reportRows    = 2000
	reportDetails = 150
	reportBytes   = 8 << 20
)

// WriteReport writes the page of runs that are over to a file: all of it is of the first, and the others are
// compared with it. summaries are those of the runs. After an error what is in the file is incomplete.
func WriteReport(path string, runs []*Played, summaries []*scenario.Summary) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return Report(f, runs, summaries)
}

// Report is WriteReport to a writer.
// It needs at least one run.
func Report(w io.Writer, runs []*Played, summaries []*scenario.Summary) error {
	var text strings.Builder
	if err := report.Compare(&text, summaries...); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := runReport(out, runs, text.String()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return out.Flush()
}

// runReport writes the page of runs, the first of which is shown. text is what a reader without JavaScript gets.
func runReport(w io.Writer, runs []*Played, text string) error {
	shown, outcomes := runs[0], &v1alpha1.OutcomeList{}
	for _, p := range runs {
		outcomes.Items = append(outcomes.Items, p.outcome)
	}
	answers, err := gather(shown.answers(outcomes, offlineMeta(shown.outcome.Name, kindReport)))
	if err != nil {
		return err
	}
	return write(w, shown.outcome.Name, text, answers)
}

// ShadowReport writes the page of a shadow's report. A reader without JavaScript gets it as text.
func ShadowReport(w io.Writer, x *v1alpha1.Shadow) error {
	var text strings.Builder
	if err := report.Shadow(&text, term.ShadowOf(x), x.At); err != nil {
		return err
	}
	answers, err := collect(ofShadow(x, offlineMeta("shadow report", kindReport)), map[string]json.RawMessage{}, "meta", "shadow")
	if err != nil {
		return err
	}
	return write(w, "Shadow report", text.String(), answers)
}

// gather returns the answers that the pages of a run ask for, by path. Lists have reportRows rows beside how many there
// are (total), from which the page says that it has the first alone. As many objects have their details as there is
// room for, pods first.
func gather(h http.Handler) (answers map[string]json.RawMessage, err error) {
	answers = map[string]json.RawMessage{}
	rows := fmt.Sprintf("?limit=%d", reportRows)
	if _, err := collect(h, answers, "meta", "overview", "outcomes", "series?step=10s", "pending", "groups", "money", "podgroups"+rows, "devices"+rows, "nodes"+rows, "pods"+rows, "decisions?limit=1000"); err != nil {
		return nil, err
	}
	if err := waitingFirst(h, answers); err != nil {
		return nil, err
	}
	var names []string
	for _, kind := range []string{"pods", "nodes", "groups", "podgroups"} {
		list := struct {
			Items []struct{ Namespace, Name, State string }
		}{}
		if err := json.Unmarshal(answers[kind], &list); err != nil {
			return nil, fmt.Errorf("reading %s: %w", kind, err)
		}
		for _, x := range list.Items[:min(len(list.Items), reportDetails)] {
			name := kind + "/" + url.PathEscape(x.Name)
			if x.Namespace != "" {
				name = kind + "/" + x.Namespace + "/" + x.Name
			}
			names = append(names, name)
		}
	}
	size := 0
	for _, a := range answers {
		size += len(a)
	}
	for _, name := range names {
		if size > reportBytes {
			break
		}
		if _, err := collect(h, answers, name); err != nil {
			return nil, err
		}
		size += len(answers[name])
	}
	return answers, nil
}

// waitingFirst puts the pods without a node before the others, since a list has only so many rows.
func waitingFirst(h http.Handler, answers map[string]json.RawMessage) error {
	var waiting, all v1alpha1.PodList
	pending, err := collect(h, map[string]json.RawMessage{}, fmt.Sprintf("pods?state=pending&limit=%d", reportRows))
	if err != nil {
		return err
	}
	for into, raw := range map[*v1alpha1.PodList]json.RawMessage{&waiting: pending["pods"], &all: answers["pods"]} {
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("reading pods: %w", err)
		}
	}
	for _, p := range all.Items {
		if p.State == v1alpha1.Placed && len(waiting.Items) < reportRows {
			waiting.Items = append(waiting.Items, p)
		}
	}
	all.Items, all.Continue = waiting.Items, ""
	answers["pods"], err = json.Marshal(all)
	return err
}

// collect asks for paths, and adds the answers that there are by path without its query.
// Questions go to the handler itself: there is no server.
func collect(h http.Handler, into map[string]json.RawMessage, paths ...string) (map[string]json.RawMessage, error) {
	for _, path := range paths {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, api.Prefix+path, nil)
		if err != nil {
			return nil, err
		}
		got := &kept{header: http.Header{}, code: http.StatusOK}
		h.ServeHTTP(got, r)
		switch got.code {
		case http.StatusOK:
			name, _, _ := strings.Cut(path, "?")
			into[name] = bytes.TrimSpace(got.body.Bytes())
		case http.StatusNotFound: // there is no such thing in this run
		default:
			return nil, fmt.Errorf("%s: %s", path, bytes.TrimSpace(got.body.Bytes()))
		}
	}
	return into, nil
}

// kept is an http.ResponseWriter that keeps what is written.
// It is for one answer.
type kept struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// The methods of http.ResponseWriter.

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) WriteHeader(code int)        { k.code = code }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }

// frame is the file around the page. The policy allows exactly the script and the styles that are inside.
// Everything in it is inside the file, down to the icon.
var frame = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{{.Title}} · Berth</title>
<link rel="icon" type="image/svg+xml" href="{{.Icon}}">
<style>{{.Style}}</style>
</head>
<body>
<div id="app"><p class="loading">Loading…</p></div>
<noscript><h1>{{.Title}}</h1><pre>{{.Text}}</pre></noscript>
<script type="application/json" id="berth-answers">{{.Answers}}</script>
<script type="module">{{.Script}}</script>
</body>
</html>
`))

// write writes the file.
func write(w io.Writer, title, text string, answers map[string]json.RawMessage) error {
	parts := map[string]string{}
	for _, name := range []string{"berth.js", "berth.css", "favicon.svg"} {
		raw, err := fs.ReadFile(ui.Files(), name)
		if err != nil {
			return err
		}
		parts[name] = string(raw)
	}
	// The element would end there otherwise.
	script := strings.ReplaceAll(parts["berth.js"], "</script", `<\/script`) // which is the same in a string
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(parts["berth.css"]))
	// Marshal escapes <, > and &, so that no answer can end the element that it is in.
	inside, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return frame.Execute(w, map[string]any{
		"Title": title, "Text": text, "Policy": policy,
		"Icon":  template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(parts["favicon.svg"]))),
		"Style": template.CSS(parts["berth.css"]), "Script": template.JS(script), "Answers": template.JS(inside),
	})
}

// hash is how a security policy names the content of an element.
// Browsers compare it with the text as it is, so nothing may be changed afterwards.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
