import type { Line } from './chart'

export interface Drawn { times: number[]; lines: Line[] }

/** overlay puts two drawings on the times of both: a value holds until the next, and there is none after the last
 * time of a drawing. Pure. */
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
  return of.lines.map(l => ({ ...l, values: from.map(k => (k < 0 ? null : l.values[k] ?? null)) }))
}
