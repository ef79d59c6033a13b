package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// kept are figures in a file, a line of JSON for each task, so that a run that was interrupted can
// go on. Without a file nothing is kept. The file doesn't know which program has measured: after a
// change of the code it is to be deleted.
type kept struct {
	name  string
	tasks map[task]map[string]float64
}

// line is a line of the file.
type line struct {
	Task    task
	Figures map[string]float64
}

// readKept reads the file, which needn't be there yet. Its error names the line that is broken.
func readKept(name string) (*kept, error) {
	k := &kept{name: name, tasks: map[task]map[string]float64{}}
	if name == "" {
		return k, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	for i, raw := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil || len(l.Figures) == 0 || l.Task.Part == "" {
			return nil, fmt.Errorf("%s:%d: %q isn't a line with a task and its figures: delete it, and it is measured again", name, i+1, raw)
		}
		k.tasks[l.Task] = l.Figures
	}
	return k, nil
}

// add appends a task's figures. The file is opened for each line: whatever ends the run, all lines
// before are complete.
func (k *kept) add(t task, figures map[string]float64) error {
	if k.name == "" {
		return nil
	}
	raw, err := json.Marshal(line{t, figures})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(k.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}
