package nodegroup

import (
	"context"
	"errors"
)

// ErrorClass says what kind of reason a provider has for not making nodes. It is Cluster
// Autoscaler's InstanceErrorClass.
type ErrorClass uint8

const (
	// OtherError is any reason but the next. An order that ended with it may have been
	// carried out all the same: the provider's next list of groups tells.
	OtherError ErrorClass = iota
	// OutOfResources is a stock-out or a quota that is used up: the provider is well, has
	// ordered nothing, and will refuse more nodes of the group for a while.
	OutOfResources
)

// ErrorClasses is how many classes there are.
const ErrorClasses = int(OutOfResources) + 1

// String returns the class as Cluster Autoscaler writes it.
func (c ErrorClass) String() string { return [...]string{"Other", "OutOfResources"}[c] }

// The codes of failures of which the provider gives none. Cluster Autoscaler has them as labels
// of metrics and in its status.
const (
	CodeRefused = "cloudProviderError" // an order was refused
	CodeTimeout = "timeout"            // nodes weren't there in time
)

// FailureCode returns the code of an instance that failed: the provider's own, such as
// QUOTA_EXCEEDED, or else the class.
func (i *Instance) FailureCode() string {
	if i.Code != "" {
		return i.Code
	}
	return i.Class.String()
}

// Error is an error of a provider with its class. An error of any other
// type is of class OtherError.
type Error struct {
	Class ErrorClass
	// Message says what was refused and why, with the provider's own code for it.
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// ClassOf returns the class of an error of a provider's.
func ClassOf(err error) ErrorClass {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return OtherError
}

// UnknownOutcome is the error of a call that may or may not have been carried out: its deadline
// has passed, the connection was cut, or the provider was never reached. The provider's next list
// of groups settles which.
type UnknownOutcome struct{ Err error }

// Error implements error.
func (u *UnknownOutcome) Error() string { return u.Err.Error() }

// Unwrap returns the error that the call ended with.
func (u *UnknownOutcome) Unwrap() error { return u.Err }

// OutcomeUnknown reports whether a call that ended with an error may have been carried out all the
// same. A provider says so with an UnknownOutcome; a context that ended says it, too.
func OutcomeUnknown(err error) bool {
	var unknown *UnknownOutcome
	return errors.As(err, &unknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
