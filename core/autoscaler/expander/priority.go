package expander

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// Where Cluster Autoscaler's users keep priorities.
const (
	PrioritiesConfigMap = "cluster-autoscaler-priority-expander"
	PrioritiesKey       = "priorities" // of the ConfigMap's data
)

// Reasons of warnings about priorities: those of Cluster Autoscaler's events.
const (
	PrioritiesInvalid      = "PriorityConfigMapInvalid"
	PrioritiesMissGroup    = "PriorityConfigMapNotMatchedGroup"
	PrioritiesMatchNothing = "PriorityConfigMapNoGroupMatched"
)

// Priorities say which node groups are preferred, by their names. They are immutable.
type Priorities struct {
	levels []level // the highest priority first
}

// level are the expressions of one priority; a group that matches one has it.
type level struct {
	priority int
	patterns []*regexp.Regexp
}

// ParsePriorities reads a YAML map of priorities, whole numbers, to lists of regular
// expressions. An error says what of the text can't be read.
func ParsePriorities(text string) (*Priorities, error) {
	var lists map[int][]string
	if err := yaml.Unmarshal([]byte(text), &lists); err != nil {
		return nil, fmt.Errorf("reading the priorities: %w; they must be a map of numbers to lists of regular expressions", err)
	}
	if lists == nil {
		return nil, errors.New("the priorities are empty; they must be a map of numbers to lists of regular expressions")
	}
	p := &Priorities{}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(lists))) {
		l := level{priority: priority}
		for _, text := range lists[priority] {
			re, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("priority %d: %q is not a regular expression: %w", priority, text, err)
			}
			l.patterns = append(l.patterns, re)
		}
		p.levels = append(p.levels, l)
	}
	return p, nil
}

// levelOf returns the index of the highest level that a group matches, the number of
// levels when it matches none.
func (p *Priorities) levelOf(group string) int {
	for i := range p.levels {
		for _, re := range p.levels[i].patterns {
			if re.MatchString(group) {
				return i
			}
		}
	}
	return len(p.levels)
}

// Priority prefers the groups of the highest priority. A group that no expression
// matches isn't chosen, unless that is so of all of them.
type Priority struct {
	// Current returns the priorities that hold now, nil for none: the strategy leaves
	// all options then. It is called in each round.
	Current func() *Priorities
	// Warn, when not nil, is told what is wrong with priorities: of one and the same
	// Priorities everything once.
	Warn func(reason, message string)

	last   *Priorities     // what warned is about
	warned map[string]bool // by message
}

var _ Strategy = (*Priority)(nil)

// Best implements Strategy. One goroutine at a time may call it.
func (s *Priority) Best(_ *Round, options []Option) []Option {
	p := s.Current()
	if p == nil {
		return options
	}
	var best []Option
	highest := len(p.levels)
	for i := range options {
		id := options[i].Group.ID
		l := p.levelOf(id)
		if l == len(p.levels) {
			s.warn(p, PrioritiesMissGroup, fmt.Sprintf("Priority expander: node group %s not found in priority expander configuration. The group won't be used.", id))
			continue
		}
		if l < highest {
			highest, best = l, nil
		}
		if l == highest {
			best = append(best, options[i])
		}
	}
	if len(best) == 0 && len(options) > 0 {
		s.warn(p, PrioritiesMatchNothing, "Priority expander: no priorities info found for any of the expansion options. No options filtered.")
		return options
	}
	return best
}

func (s *Priority) warn(p *Priorities, reason, message string) {
	if s.Warn == nil {
		return
	}
	if s.last != p {
		s.last, s.warned = p, map[string]bool{}
	}
	if !s.warned[message] {
		s.warned[message] = true
		s.Warn(reason, message)
	}
}
