// Package remark keeps what providers have said in the log, so that each thing is said once until
// it changes: groups are read every few seconds, and what is wrong with one mostly stays so.
package remark

// Last is what was said last, by what it is about. It is for one goroutine at a time.
type Last map[string]string

// IsNews takes what is wrong with something, "" for nothing, and reports whether it is to be said:
// whether it isn't what was said last.
func (l Last) IsNews(about, why string) bool {
	if l[about] == why {
		return false
	}
	if why == "" {
		delete(l, about)
	} else {
		l[about] = why
	}
	return true
}
