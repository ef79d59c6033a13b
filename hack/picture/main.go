// Command picture draws docs/images/demo-light.svg and demo-dark.svg, the picture in README.md,
// from docs/images/demo.txt: what make demo has printed on a terminal.
//
//	make demo | tee docs/images/demo.txt
//	go run ./hack/picture
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("docs/images"); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// run draws the pictures in a folder, from the text there.
func run(dir string) error {
	text, err := os.ReadFile(dir + "/demo.txt")
	if err != nil {
		return fmt.Errorf("reading what make demo has printed: %w", err)
	}
	lines, err := firstShow(string(text))
	if err != nil {
		return fmt.Errorf("%s/demo.txt: %w", dir, err)
	}
	for name, theme := range themes {
		if err := os.WriteFile(fmt.Sprintf("%s/demo-%s.svg", dir, name), []byte(draw(lines, theme)), 0o644); err != nil {
			return fmt.Errorf("writing the picture: %w", err)
		}
	}
	return nil
}
