package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// task is what one process measures. It is the key of a kept figure, too: whatever changes a figure
// but the program itself must be one of its fields.
type task struct {
	Part        string
	Nodes       int
	PodsPerNode int
	Classes     int
}

// measureRequest is what a process that measures is told.
type measureRequest struct {
	Task    task
	Profile string // the file that a CPU profile goes to; "" for none
}

func (t task) pods() int { return t.Nodes * t.PodsPerNode }

// measure measures in this process. The profile has all that the process does, including what the
// part prepares before it takes the time.
func (r *measureRequest) measure(ctx context.Context) (map[string]float64, error) {
	t := r.Task
	i := slices.IndexFunc(parts, func(p part) bool { return p.name == t.Part })
	if i < 0 {
		return nil, fmt.Errorf("there is no part %q; there are %s", t.Part, strings.Join(partNames(), ", "))
	}
	if r.Profile != "" {
		f, err := os.Create(r.Profile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	m := &meter{figures: map[string]float64{}}
	if err := parts[i].measure(ctx, t, m); err != nil {
		return nil, fmt.Errorf("measuring %s with %d nodes: %w", t.Part, t.Nodes, err)
	}
	return m.figures, nil
}

// summary is the line that says that the task is done.
func (t task) summary(p part, figures map[string]float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %d nodes, %d pods:", t.Part, t.Nodes, t.pods())
	for _, f := range p.figures {
		fmt.Fprintf(&out, " %s %s;", f.key, strings.TrimSpace(number(figures[f.key])+" "+f.unit))
	}
	return strings.TrimSuffix(out.String(), ";")
}

// spawn measures a task in a process of its own, on one core, and returns the figures with the
// most memory that the process had, and how long it took by the clock. The process ends with ctx.
func spawn(ctx context.Context, t task, profile string) (map[string]float64, time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	request, err := json.Marshal(measureRequest{t, profile})
	if err != nil {
		return nil, 0, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, measureCommand, string(request))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	start := time.Now()
	if err := cmd.Run(); ctx.Err() != nil {
		return nil, 0, errors.New("interrupted; nothing is written")
	} else if err != nil {
		return nil, 0, fmt.Errorf("measuring %s with %d nodes: %w", t.Part, t.Nodes, err)
	}
	figures := map[string]float64{}
	if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
		return nil, 0, fmt.Errorf("reading the figures of %s with %d nodes: %w", t.Part, t.Nodes, err)
	}
	figures[t.Part+" peak"] = peak(cmd.ProcessState) / (1 << 30)
	return figures, time.Since(start), nil
}

// peak returns the largest resident set of an ended process, in bytes. It includes what the part
// needed to prepare, such as the objects that an informer would have decoded.
func peak(p *os.ProcessState) float64 {
	most := float64(p.SysUsage().(*syscall.Rusage).Maxrss)
	if runtime.GOOS == "darwin" {
		return most // Linux has it in KiB
	}
	return most * 1024
}

// meter collects the figures of a task by their keys in parts, each in the unit that parts names.
type meter struct{ figures map[string]float64 }

// time returns the CPU time in seconds that this process spends during f, garbage collection
// that falls into it included. It is CPU time so that other work on the machine doesn't count.
func (m *meter) time(f func()) float64 {
	before := cpu()
	f()
	return (cpu() - before).Seconds()
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it can't fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// live returns how many bytes of the heap are in use once all garbage is collected.
func live() float64 {
	runtime.GC()
	runtime.GC() // what finalizers have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
