package testkit

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// WithoutErrorBackoff has apimachinery log errors without slowing down those who report many:
// it counts from when the program started, which in a bubble of testing/synctest is decades ahead.
func WithoutErrorBackoff(t testing.TB) {
	all := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = all })
	utilruntime.ErrorHandlers = nil
}
