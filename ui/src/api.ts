import { computed, effect, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { now, paused } from './settings'
import type { Decision, Meta, Overview, StreamedDecisions } from './types'

// All that the page knows comes from here: /api/v1alpha1/ of whoever serves the page, or the answers
// that a report has inside.

/** base is the API's address beside the page's, below any prefix of a proxy. */
const base = typeof location === 'undefined' ? '' : location.pathname.replace(/(ui\/)?[^/]*$/, '') + 'api/v1alpha1/'

/** inside are the answers that a report carries, by path and query. */
const inside: Record<string, unknown> | undefined = (() => {
  const el = typeof document === 'undefined' ? null : document.getElementById('berth-answers')
  return el ? JSON.parse(el.textContent ?? '{}') : undefined
})()

export class APIError extends Error {
  constructor(public status: number, message: string) {
    super(message)
  }
}

export type Query = Record<string, string | number | string[] | undefined>

/** address writes path and query, the query in the order of its names. */
export function address(path: string, query: Query = {}): string {
  const q = new URLSearchParams()
  for (const k of Object.keys(query).sort()) {
    const v = query[k]
    for (const one of Array.isArray(v) ? v : [v]) if (one !== undefined && one !== '') q.append(k, String(one))
  }
  const s = q.toString()
  return path + (s ? '?' + s : '')
}

/** get asks for one answer. */
export async function get<T>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  const at = address(path, query)
  if (inside) {
    if (at in inside) return inside[at] as T
    throw new APIError(404, 'This report doesn’t have that. Open the file it was made from with: berth ui --file FILE')
  }
  let r: Response
  try {
    r = await fetch(base + at, { signal: abort, credentials: 'same-origin', headers: { Accept: 'application/json' } })
  } catch (e) {
    if (abort?.aborted) throw e
    throw new APIError(0, 'Berth can’t be reached.')
  }
  if (r.ok) return (await r.json()) as T
  const said = await r.text()
  let message = said
  try {
    message = JSON.parse(said).error ?? said
  } catch {
    /* then it is the text */
  }
  throw new APIError(r.status, message.trim() || `${r.status} ${r.statusText}`)
}

/** all asks for all pages of a list. */
export async function all<T extends { items: unknown[]; continue?: string }>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  const first = await get<T>(path, { limit: 5000, ...query }, abort)
  for (let next = first.continue; next; ) {
    const more = await get<T>(path, { limit: 5000, ...query, continue: next }, abort)
    first.items.push(...more.items)
    next = more.continue
  }
  return first
}

// What the stream brings.

export const meta = signal<Meta | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
/** trouble is why nothing new comes, "" while it does. */
export const trouble = signal('')
/** decisions are the newest, the oldest first. */
export const decisions = signal<Decision[]>([])
const kept = 3000

/** clockNow is the time of the cluster: virtual in a replay, otherwise the server's, by which this
 * machine's clock may be off. */
export const clockNow = computed(() => {
  const m = meta.value
  if (!m) return now.value
  return m.capabilities.replay ? Date.parse(m.now) : now.value + skew.value
})
const skew = signal(0)
effect(() => {
  const at = overview.value?.at
  if (at) skew.value = Date.parse(at) - Date.now()
})

/** prices says that there is money to show. */
export const prices = computed(() => meta.value?.capabilities.prices ?? false)
export const currency = computed(() => ({ '': '$', USD: '$', EUR: '€', GBP: '£' })[meta.value?.currency ?? ''] ?? meta.value?.currency ?? '$')

/** tick counts what has come: pages ask anew when it grows. */
export const tick = signal(0)

/** merge adds decisions to those that are there, each once, and keeps the newest. */
export function merge(have: Decision[], more: Decision[], most = kept): Decision[] {
  const last = have.at(-1)?.seq ?? 0
  const fresh = more.filter(d => d.seq > last)
  return fresh.length === 0 ? have : [...have, ...fresh].slice(-most)
}

/** start begins to follow. It goes on after an outage, a restart or another leader. */
export function start(): void {
  let source: EventSource | undefined
  let again: ReturnType<typeof setTimeout> | undefined
  let wait = 1000
  const retry = (why: string) => {
    trouble.value = why
    source?.close()
    clearTimeout(again)
    again = setTimeout(begin, wait)
    wait = Math.min(wait * 2, 15000)
  }
  const begin = async () => {
    try {
      const m = await get<Meta>('meta')
      if (meta.value && meta.value.epoch !== m.epoch) decisions.value = []
      meta.value = m
      if (!m.leading && !m.capabilities.replay) {
        retry(m.leader ? `This instance stands by; ${m.leader} leads. Waiting for it.` : 'No instance leads yet. Waiting for one.')
        return
      }
      overview.value = await get<Overview>('overview')
      const d = await get<{ items: Decision[] }>('decisions', { limit: 500 })
      decisions.value = merge(decisions.value, d.items)
      trouble.value = ''
      tick.value++
      wait = 1000
      if (!m.capabilities.replay && !inside) follow()
    } catch (e) {
      retry(explain(e))
    }
  }
  const follow = () => {
    source?.close()
    source = new EventSource(base + 'stream')
    source.addEventListener('overview', e => {
      if (paused.value) return
      overview.value = JSON.parse((e as MessageEvent).data)
      trouble.value = ''
      tick.value++
    })
    source.addEventListener('decisions', e => {
      if (paused.value) return
      const s: StreamedDecisions = JSON.parse((e as MessageEvent).data)
      decisions.value = merge(s.reset ? [] : decisions.value, s.items ?? [])
    })
    source.addEventListener('end', e => retry(JSON.parse((e as MessageEvent).data).error ?? 'Berth has ended the stream.'))
    source.onerror = () => retry('The connection was lost. Trying again.')
  }
  // A page that nobody sees holds no connection: a browser has few for each server, and Berth few streams.
  const seen = () => {
    if (document.visibilityState === 'hidden') {
      source?.close()
      clearTimeout(again)
    } else if (!inside) void begin()
  }
  document.addEventListener('visibilitychange', seen)
  addEventListener('pagehide', () => source?.close())
  addEventListener('pageshow', e => e.persisted && seen())
  effect(() => {
    if (!paused.value && meta.peek() && !inside && !trouble.peek()) void begin()
  })
  setInterval(() => (now.value = Date.now()), 1000)
  void begin()
}

function explain(e: unknown): string {
  if (!(e instanceof APIError)) return String(e)
  if (e.status === 401) return 'You aren’t signed in. Open the address that kubectl berth ui prints.'
  if (e.status === 403) return `You have no right to see this: ${e.message}`
  return e.message
}

export interface Answer<T> {
  data?: T
  error?: string
}

/** useAnswer asks, and asks anew while things change, at most every so many milliseconds. What there was
 * of the same path stays until the new answer is there. */
export function useAnswer<T>(path: string | undefined, query: Query = {}, o: { every?: number; pages?: boolean } = {}): Answer<T> {
  const state = useSignal<Answer<T> & { at?: string }>({})
  const busy = useRef<{ path: string | undefined; at: string; begun: number }>(undefined)
  const at = path === undefined ? '' : address(path, query)
  const t = tick.value
  useEffect(() => {
    if (path === undefined) {
      state.value = {}
      return
    }
    const same = busy.current?.at === at
    if (same && Date.now() - busy.current!.begun < (o.every ?? 2000)) return
    if (same && meta.value?.capabilities.replay) return
    if (busy.current?.path !== path) state.value = {}
    busy.current = { path, at, begun: Date.now() }
    const mine = busy.current
    ;(o.pages ? all<never>(path, query) : get<T>(path, query)).then(
      data => busy.current?.at === mine.at && (state.value = { data, at }),
      e => busy.current?.at === mine.at && (state.value = { data: state.value.data, error: explain(e), at }),
    )
  }, [at, t])
  return state.value
}
