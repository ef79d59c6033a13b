package door

// Complaints keeps what was wrong with what came from outside, by what it is about, so that each
// thing is said once until it changes: a provider's groups are read every few seconds, and what is
// wrong with one mostly stays so. It is for one goroutine at a time.
type Complaints map[string]string

// IsNews takes what is wrong with something, "" for nothing, and reports whether it is to be said:
// whether it isn't what was said last.
func (c Complaints) IsNews(about, why string) bool {
	if c[about] == why {
		return false
	}
	if why == "" {
		delete(c, about)
	} else {
		c[about] = why
	}
	return true
}
