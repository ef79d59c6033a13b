// Command oracle136 answers for the plugins of kube-scheduler 1.36, with which it is linked: it reads
// questions from its standard input and writes the answers to its standard output
// (devcluster/oracle, Serve). The module is one of its own because a program holds one version of
// k8s.io/kubernetes, and that of the dev cluster is newer.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/berthproject/berth/devcluster/oracle"
)

func main() {
	if err := oracle.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle136:", err)
		os.Exit(1)
	}
}
