import { computed, effect, signal } from '@preact/signals'
import { go, param } from './route'
import { seconds } from './format'

// The time of a run at which the page looks. It is in the URL as a length of time since the run's
// beginning, "t=1h2m3s", and the end without it.

/** run is from when to when there is something to look at, in milliseconds; undefined outside of a replay. */
export const run = signal<{ from: number; until: number } | undefined>(undefined)

/** moment is the time that is looked at: the run's end where none is chosen. */
export const moment = computed(() => {
  const r = run.value
  if (!r) return NaN
  const s = seconds(param('t'))
  return Number.isFinite(s) ? Math.min(r.until, Math.max(r.from, r.from + s * 1000)) : r.until
})

/** asked is the time for which the server is asked: the moment, once it has stood still for a while. It is "" for
 * the end. */
export const asked = signal('')
let wait: ReturnType<typeof setTimeout> | undefined
effect(() => {
  const r = run.value, m = moment.value
  clearTimeout(wait)
  if (r && asked.peek() !== written(m, r.until)) wait = setTimeout(settle, 120)
})

const written = (m: number, until: number): string => (m >= until ? '' : new Date(m).toISOString())

/** settle asks for the moment at once. */
export function settle(): void {
  const r = run.peek()
  if (r) asked.value = written(moment.peek(), r.until)
}

/** since writes so many milliseconds as the URL has them. */
export function since(ms: number): string {
  const s = Math.max(0, ms / 1000)
  const whole = Math.floor(s)
  const rest = Math.round((s - whole) * 1000) / 1000
  const h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60)
  return (h ? `${h}h` : '') + (m ? `${m}m` : '') + `${Math.round(((whole % 60) + rest) * 1000) / 1000}s`
}

/** seek looks at a time, in milliseconds; what is beyond the run is its end. */
export function seek(to: number): void {
  const r = run.peek()
  if (!r) return
  const at = Math.min(r.until, Math.max(r.from, to))
  go({ t: at >= r.until ? undefined : since(at - r.from) }, true)
}
