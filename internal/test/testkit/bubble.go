package testkit

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// WithoutErrorBackoff lets apimachinery log errors without slowing down code that reports many:
// it counts from when the program started, which in a bubble of testing/synctest is decades ahead.
func WithoutErrorBackoff(t testing.TB) {
	all := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = all })
	utilruntime.ErrorHandlers = nil
}
