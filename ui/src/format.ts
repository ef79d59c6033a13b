// Numbers, amounts, times and durations as people read them. Pure: what "now" is comes from the caller.

const suffixes: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
}

/** quantity returns what a Kubernetes quantity such as "16Gi" or "250m" amounts to, NaN if it is none. */
export function quantity(q: string | number | undefined): number {
  if (typeof q === 'number') return q
  const m = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(q ?? '')
  return m ? Number(m[1]) * suffixes[m[2] ?? '']! : NaN
}

/** bytes writes an amount of memory or storage with a binary suffix and at most three digits. */
export function bytes(n: number): string {
  if (!Number.isFinite(n)) return '–'
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
  let i = 0
  while (Math.abs(n) >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return round(n) + units[i]
}

/** amount writes so much of a resource: memory and storage in bytes, the others as numbers. */
export function amount(resource: string, q: string | number | undefined): string {
  const n = quantity(q)
  if (!Number.isFinite(n)) return '–'
  return /memory|storage|hugepages/.test(resource) ? bytes(n) : round(n)
}

// A formatter for each number of digits: to make one takes a hundred times as long as to use it, and a map of 5,000 nodes
// has 20,000 numbers.
const numbers = new Map<number, Intl.NumberFormat>()
function fixed(n: number, least: number, most: number): string {
  const key = least * 10 + most
  let f = numbers.get(key)
  if (!f) numbers.set(key, (f = new Intl.NumberFormat('en', { minimumFractionDigits: least, maximumFractionDigits: most })))
  return f.format(n)
}

/** round writes a number with about three significant digits, whole from 100 on, and thousands apart. */
export function round(n: number): string {
  if (!Number.isFinite(n)) return '–'
  const a = Math.abs(n)
  const digits = a >= 100 || Number.isInteger(n) ? 0 : a >= 10 ? 1 : 2
  return fixed(n, 0, digits)
}

/** count writes a whole number with thousands apart. */
export const count = (n: number | undefined): string => (n === undefined || !Number.isFinite(n) ? '–' : fixed(Math.round(n), 0, 0))

/** plural writes a count with its noun: "1 node", "2 nodes". */
export const plural = (n: number, one: string, many = one + 's'): string => `${count(n)} ${n === 1 ? one : many}`

/** percent writes a share. */
export function percent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return '–'
  const p = share * 100
  return p > 0 && p < 1 ? '<1 %' : `${Math.round(p)} %`
}

/** cash writes an amount of money. */
export function cash(n: number | undefined, currency = '$'): string {
  if (n === undefined || !Number.isFinite(n)) return '–'
  const digits = Math.abs(n) >= 100 ? 0 : 2
  const written = fixed(n, digits, digits)
  return currency.length === 1 ? currency + written : `${written} ${currency}`
}

/** money writes a price for an hour. */
export function money(n: number | undefined, currency = '$'): string {
  const c = cash(n, currency)
  return c === '–' ? c : c + '/h'
}

const steps: [number, string][] = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']]

/** span writes a length of time in its two largest units: "3d4h", "5m10s", "0.3s". */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–'
  const s = Math.abs(seconds)
  if (s < 1) return s === 0 ? '0s' : `${round(s)}s`
  const i = steps.findIndex(([n]) => s >= n)
  const [n, unit] = steps[i]!
  const whole = Math.floor(s / n)
  const next = steps[i + 1]
  const rest = next ? Math.floor((s - whole * n) / next[0]) : 0
  return `${whole}${unit}` + (next && rest > 0 && whole < 10 ? `${rest}${next[1]}` : '')
}

/** seconds returns the length of a Go duration such as "1h2m3.5s", NaN if it is none. */
export function seconds(duration: string | undefined): number {
  if (!duration) return NaN
  let total = 0
  const rest = duration.replace(/([0-9.]+)(h|ms|m|µs|us|ns|s)/g, (_, n, unit) => {
    total += Number(n) * { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, 'µs': 1e-6, ns: 1e-9 }[unit as string]!
    return ''
  })
  return rest.replace('-', '') === '' ? (duration.startsWith('-') ? -total : total) : NaN
}

/** since returns how long ago a time was, in seconds. */
export const since = (time: string | undefined, now: number): number => (time ? (now - Date.parse(time)) / 1000 : NaN)

/** age writes how long ago a time was, in whole seconds. */
export const age = (time: string | undefined, now: number): string => span(Math.round(since(time, now)))

// Making a formatter takes a hundred times as long as using one.
const formatters = new Map<string, Intl.DateTimeFormat>()
function formatter(kind: 'dateStyle' | 'timeStyle', utc: boolean): Intl.DateTimeFormat {
  const key = kind + utc
  let f = formatters.get(key)
  if (!f) formatters.set(key, (f = new Intl.DateTimeFormat('sv', { [kind]: kind === 'dateStyle' ? 'short' : 'medium', timeZone: utc ? 'UTC' : undefined })))
  return f
}

/** clock writes the time of a day, with the date when that is another than today's. */
export function clock(time: string | number | undefined, utc: boolean, now: number): string {
  if (time === undefined || time === '') return '–'
  const d = new Date(time)
  if (Number.isNaN(d.getTime())) return '–'
  const day = (x: Date) => formatter('dateStyle', utc).format(x)
  const hms = formatter('timeStyle', utc).format(d)
  return day(d) === day(new Date(now)) ? hms : `${day(d)} ${hms}`
}

/** middle shortens a name in its middle: its end tells names apart as often as its beginning. */
export function middle(s: string, length: number): string {
  if (s.length <= length) return s
  const head = Math.ceil((length - 1) / 2)
  return s.slice(0, head) + '…' + s.slice(s.length - (length - 1 - head))
}
