package engine

import "slices"

// pluginSet is a set of plugins, by their position in the profile; the zero value
// is empty. It is a value: with and union return a set and leave their operands as
// they are. There is no limit to the number of plugins, and sets of the first 64
// cost no allocation.
type pluginSet struct {
	first uint64   // positions 0 to 63
	more  []uint64 // positions from 64 on, 64 a word; not written after it was made
}

// has reports whether the plugin at a position is in the set.
func (s pluginSet) has(plugin int) bool {
	if plugin < 64 {
		return s.first&(1<<plugin) != 0
	}
	word := plugin/64 - 1
	return word < len(s.more) && s.more[word]&(1<<(plugin%64)) != 0
}

// with returns the set with a plugin added.
func (s pluginSet) with(plugin int) pluginSet {
	if s.has(plugin) {
		return s
	}
	if plugin < 64 {
		s.first |= 1 << plugin
		return s
	}
	word := plugin/64 - 1
	more := make([]uint64, max(len(s.more), word+1))
	copy(more, s.more)
	more[word] |= 1 << (plugin % 64)
	s.more = more
	return s
}

// union returns the plugins that are in one of the sets.
func (s pluginSet) union(o pluginSet) pluginSet {
	s.first |= o.first
	if len(o.more) == 0 || slices.Equal(s.more, o.more) {
		return s
	}
	more := make([]uint64, max(len(s.more), len(o.more)))
	copy(more, s.more)
	for i, word := range o.more {
		more[i] |= word
	}
	s.more = more
	return s
}

// equal reports whether both sets hold the same plugins.
func (s pluginSet) equal(o pluginSet) bool {
	return s.first == o.first && slices.Equal(s.more, o.more)
}
