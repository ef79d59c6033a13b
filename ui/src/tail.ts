import type { Decision } from './types'

// The newest decisions, the oldest first. Numbers of one leader's decisions have no gaps, so a gap in a list is what wasn't
// read. Pure.

/** kept is how many decisions the page keeps. */
const kept = 3000

/** merge adds decisions to those that are there, each once and in the order of their numbers, and keeps the newest. */
export function merge(have: Decision[], more: Decision[], most = kept): Decision[] {
  const last = have.at(-1)?.seq ?? 0
  const known = new Set(more.some(d => d.seq <= last) ? have.map(d => d.seq) : [])
  const fresh = more.filter(d => !known.has(d.seq))
  if (fresh.length === 0) return have
  const all = [...have, ...fresh]
  if (fresh[0]!.seq < last) all.sort((a, b) => a.seq - b.seq)
  return all.slice(-most)
}

/** Gap is the decisions with a number greater than after and less than before. */
export interface Gap { after: number; before: number }

/** gapIn returns the newest gap in a list, undefined for none. */
export function gapIn(list: Decision[]): Gap | undefined {
  if (leftOut(list) === 0) return undefined
  for (let i = list.length - 1; i > 0; i--) {
    const after = list[i - 1]!.seq, before = list[i]!.seq
    if (before - after > 1) return { after, before }
  }
}

/** leftOut returns how many decisions are in the gaps of a list. */
export const leftOut = (list: Decision[]): number => (list.length ? list.at(-1)!.seq - list[0]!.seq + 1 - list.length : 0)
