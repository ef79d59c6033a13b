package nodegroup_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berthproject/berth/core/autoscaler/nodegroup"
)

// TestClassOf checks the classes of errors that providers return.
func TestClassOf(t *testing.T) {
	stockOut := &nodegroup.Error{Class: nodegroup.OutOfResources, Message: "no more"}
	for _, x := range []struct {
		err  error
		want nodegroup.ErrorClass
	}{
		{nil, nodegroup.OtherError},
		{errors.New("the connection was lost"), nodegroup.OtherError},
		{&nodegroup.Error{Message: "the connection was lost"}, nodegroup.OtherError},
		{stockOut, nodegroup.OutOfResources},
		{fmt.Errorf("increasing group g: %w", stockOut), nodegroup.OutOfResources},
	} {
		if got := nodegroup.ClassOf(x.err); got != x.want {
			t.Errorf("%v: got %s, want %s", x.err, got, x.want)
		}
	}
}
