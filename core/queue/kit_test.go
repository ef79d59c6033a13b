package queue_test

import (
	"strconv"
	"strings"

	"github.com/berthproject/berth/core/cluster"
	"github.com/berthproject/berth/core/engine"
	"github.com/berthproject/berth/core/plugins"
	"github.com/berthproject/berth/internal/test/testkit"
)

// kit makes pods and classes.
type kit struct {
	schema *cluster.Schema
	engine *engine.Engine
}

func newKit() *kit {
	schema := cluster.NewSchema()
	return &kit{schema, testkit.Must(engine.New(cluster.New(schema), plugins.Default(schema, plugins.Options{}), engine.Options{}))}
}

// classes are the names of the classes, in the order in which they are made.
var classes = []string{"small", "medium", "large"}

func (k *kit) pod(name string, priority int) *cluster.Pod {
	return k.schema.ParsePod(testkit.Pod(name).Priority(int32(priority)).Obj())
}

// class returns a class of that name, the same for each call.
func (k *kit) class(name string) *engine.Class {
	var class *engine.Class
	for i, c := range classes {
		made := k.engine.Class(k.schema.ParsePod(testkit.Pod("of-"+c).Req("cpu", strconv.Itoa(i+1)).Obj()))
		if c == name {
			class = made
		}
	}
	return class
}

// name is the inverse of class.
func (k *kit) name(c *engine.Class) string {
	return strings.TrimPrefix(c.Pod().Object.Name, "of-")
}
