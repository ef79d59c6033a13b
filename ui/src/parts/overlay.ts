import type { Line } from './chart'

export interface Drawn { times: number[]; lines: Line[] }

/** overlay puts two drawings on the times of both: a value holds until the next, one that grows is between the two, and there
 * is none after the last time of a drawing. Pure. */
export function overlay(a: Drawn, b: Drawn | undefined): Drawn {
  if (!b) return a
  const times = [...new Set([...a.times, ...b.times])].sort((x, y) => x - y)
  return { times, lines: [...spread(a, times), ...spread(b, times)] }
}

function spread(of: Drawn, times: number[]): Line[] {
  const last = of.times.at(-1) ?? -Infinity
  let i = -1
  const from = times.map(t => {
    while (i + 1 < of.times.length && of.times[i + 1]! <= t) i++
    return t > last ? -1 : i
  })
  return of.lines.map(l => ({ ...l, values: from.map((k, at) => (k < 0 ? null : l.grows ? between(of.times, l.values, k, times[at]!) : l.values[k] ?? null)) }))
}

/** between is the value at a time from times[k] on and before the next one, on the straight line between the two. */
function between(times: number[], values: (number | null)[], k: number, at: number): number | null {
  const a = values[k] ?? null, b = values[k + 1] ?? null
  return a === null || b === null || at === times[k] ? a : a + ((b - a) * (at - times[k]!)) / (times[k + 1]! - times[k]!)
}
