package step

import "errors"

// ErrRefused is in the error of an eviction that a disruption budget doesn't allow: workers
// wrap it, and the driver sets EvictionDone.Refused by it.
var ErrRefused = errors.New("a disruption budget does not allow the eviction")
