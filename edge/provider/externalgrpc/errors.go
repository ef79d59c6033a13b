package externalgrpc

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// callError returns the error of a call for people, with what to do where that is known.
// RESOURCE_EXHAUSTED is of class OutOfResources: the server says that it has no more. After
// DEADLINE_EXCEEDED, UNAVAILABLE and CANCELLED the server may or may not have carried the call out
// (nodegroup.UnknownOutcome). Any other code is the server's own refusal.
func callError(call string, err error) error {
	s := status.Convert(err)
	message := fmt.Sprintf("%s: %s: %s", call, s.Code(), s.Message())
	if remedy := remedyFor(s); remedy != "" {
		message += "; " + remedy
	}
	failed := &failedCall{code: s.Code(), message: message}
	switch s.Code() {
	case codes.ResourceExhausted:
		return &nodegroup.Error{Class: nodegroup.OutOfResources, Message: message}
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return &nodegroup.UnknownOutcome{Err: failed}
	}
	return failed
}

// failedCall is the error of a call.
type failedCall struct {
	code    codes.Code
	message string
}

// Error implements error.
func (e *failedCall) Error() string { return e.message }

// hasCode reports whether an error is that of a call with one of some codes.
func hasCode(err error, any ...codes.Code) bool {
	var failed *failedCall
	if !errors.As(err, &failed) {
		return false
	}
	for _, code := range any {
		if failed.code == code {
			return true
		}
	}
	return false
}

// leftOut reports whether the server doesn't implement the call.
func leftOut(err error) bool { return hasCode(err, codes.Unimplemented) }

// noAnswer reports whether the server can't be reached, or is too slow.
func noAnswer(err error) bool { return hasCode(err, codes.Unavailable, codes.DeadlineExceeded) }

// closed is said when the server has closed the connection and its reason wasn't read.
const closed = "the server closed the connection: it does not speak gRPC, or rejects the client's certificate"

// remedies are what to do about errors of connections, by what is in their messages. grpc hands
// out no more than the message.
var remedies = []struct{ has, remedy string }{
	{"signed by unknown authority", "cacert must have the CA of the server's certificate"},
	{"certificate is valid for", "the host in address must be a name of the server's certificate"},
	{"certificate is not valid for any names", "the host in address must be a name of the server's certificate"},
	{"doesn't contain any IP SANs", "the host in address must be a name of the server's certificate"},
	{"certificate has expired", "renew the server's certificate"},
	{"remote error: tls: certificate required", "the server requires a client certificate; set cert, key and cacert"},
	{"remote error: tls: bad certificate", "the server rejects the client's certificate; cert must be signed by its client CA and be valid now"},
	{"remote error: tls: unknown certificate authority", "the server rejects the client's certificate; cert must be signed by its client CA"},
	{"remote error: tls: expired certificate", "the client's certificate has expired; renew cert"},
	{"first record does not look like a TLS handshake", "the server does not use TLS; remove cert, key and cacert, or make it serve TLS"},
	{"looked like an HTTP/1.1 header", "an HTTP/1.1 server listens at this address, not one of the externalgrpc protocol"},
	{"error reading server preface", "the server at this address does not speak gRPC, or requires TLS; if it does, set cert, key and cacert"},
	{"broken pipe", closed}, {"connection reset by peer", closed},
	{"connection refused", "nothing listens at this address; start the server (if it has ended, its own log says why), or correct the address"},
	{"no such host", "the host in address can't be resolved; correct it"},
}

func remedyFor(s *status.Status) string {
	switch s.Code() {
	case codes.Unavailable:
		for _, r := range remedies {
			if strings.Contains(s.Message(), r.has) {
				return r.remedy
			}
		}
	case codes.Unimplemented:
		if strings.HasPrefix(s.Message(), "unknown service") {
			return "another gRPC service listens at this address, not one of the externalgrpc protocol"
		}
	case codes.DeadlineExceeded:
		return "the server is too slow, or hangs; whether it executed the call is unknown. grpc_timeout sets the timeout of a call"
	}
	return ""
}
