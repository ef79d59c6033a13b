package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	v1alpha1 "github.com/berthproject/berth/edge/api/v1alpha1"
)

// This file answers from a shadow report that was saved. There is no core behind it: what the report hasn't got
// can't be asked for, and the error says so rather than that the object isn't there.

// OfReport returns a handler that answers meta and shadow, of a report that was saved, and nothing else. Parameters of a
// query are ignored: no filter could apply. Nobody's rights are asked for, since whoever has the file has read it.
func OfReport(meta v1alpha1.Meta, report *v1alpha1.Shadow) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch strings.TrimPrefix(r.URL.Path, Prefix) {
		case "meta":
			answer = meta
		case "shadow":
			answer = report
		case "schema":
			write(w, http.StatusOK, schemaJSON)
			return
		default:
			// 404 and not 501: a client that finds a path missing goes on without it, as with an older Berth.
			fail(w, http.StatusNotFound, errors.New("a shadow report has nothing but meta and shadow"))
			return
		}
		body, err := json.Marshal(answer)
		if err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
		write(w, http.StatusOK, body)
	})
}
