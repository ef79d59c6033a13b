package launching

// This file tells launches that fail by chance, which some do on any infrastructure, from a
// group whose launches fail.

// outcomes counts launches by how they ended, the later the more. The zero value has seen
// none.
type outcomes struct{ failed, passed float64 }

func (o *outcomes) fail() { o.count(&o.failed) }
func (o *outcomes) pass() { o.count(&o.passed) }

func (o *outcomes) count(which *float64) {
	o.failed *= 1 - 1.0/outcomesKept
	o.passed *= 1 - 1.0/outcomesKept
	*which++
}

// failing reports whether more launches fail than by chance. Those that are coming count as
// passed: a failure is seen sooner than a success.
func (o *outcomes) failing(coming int) bool {
	return Failing(o.failed, o.passed+float64(coming))
}

// Failing reports whether so many launches that failed, beside so many others, are more than fail by
// chance.
func Failing(failed, others float64) bool { return failed > float64(failureLimit*(failed+others)) }
