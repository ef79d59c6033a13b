package svg

import (
	"html/template"
	"strings"
)

// Section is a part of a page. All of it but the title may be missing.
type Section struct {
	Title, Text string
	Head        []string   // of the table
	Rows        [][]string // of the table
	Figures     []string   // as Figure returns them
}

// page needs no network and no script.
var page = template.Must(template.New("").Funcs(template.FuncMap{
	"svg": func(figure string) template.HTML { return template.HTML(figure) },
}).Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<style>
body{font:14px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;background:#fff;color:#1f2328}
table{border-collapse:collapse;margin:1em 0}th,td{border:1px solid #d1d9e0;padding:.3em .7em;text-align:left;vertical-align:top}
section>svg{max-width:100%;height:auto;margin:.5em 1em .5em 0}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}th,td{border-color:#3d444d}}
</style>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{range .Sections}}<section>
<h2>{{.Title}}</h2>
{{with .Text}}<p>{{.}}</p>
{{end}}{{if .Rows}}<table>
<tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{end}}{{range .Figures}}{{svg .}}{{end}}</section>
{{end}}</html>
`))

// Page returns an HTML page with sections. Texts are escaped.
func Page(title, text string, sections []Section) (string, error) {
	var out strings.Builder
	err := page.Execute(&out, map[string]any{"Title": title, "Text": text, "Sections": sections})
	return out.String(), err
}
